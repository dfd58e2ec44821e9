//! The steps of a body.

use warmq_config::{Entry, Fields, Item, NodeKind, did_you_mean};

use super::changes;
use super::references;
use super::scope::{Scope, spot};
use super::values::{amount, optional};
use crate::expr::{Expr, SettingId};
use crate::object::Class;
use crate::quantity::Quantity::{Count, Cycles, Size, Time};
use crate::recorded::{self, Recorded};
use crate::step::{Action, Fragment, Pattern, Share, Step, Touch, When};
use crate::task::TaskKindId;

/// A step that is being read: its keys, the value of its verb, and the names in scope.
struct Reader<'r, 'a, 'n> {
    fields: &'r Fields<'a>,
    verb: Item<'a>,
    scope: &'r mut Scope<'n>,
}

type Read = for<'r, 'a, 'n> fn(Reader<'r, 'a, 'n>) -> Option<Action>;

/// Every verb, and who reads its step.
const VERBS: &[(&str, Read)] = &[
    ("run", |it| {
        Some(Action::Run(amount(&it.verb, it.scope, &[Time, Cycles])?))
    }),
    ("spin", |it| {
        Some(Action::Spin(amount(&it.verb, it.scope, &[Time])?))
    }),
    ("touch", |it| it.touch()),
    ("sleep", |it| {
        Some(Action::Sleep(amount(&it.verb, it.scope, &[Time])?))
    }),
    ("timer", |it| it.timer()),
    ("lock", |it| it.object(Class::Mutex).map(Action::Lock)),
    ("unlock", |it| it.object(Class::Mutex).map(Action::Unlock)),
    ("wait", |it| it.wait()),
    ("signal", |it| it.signal()),
    ("raise", |it| it.object(Class::Semaphore).map(Action::Raise)),
    ("lower", |it| it.object(Class::Semaphore).map(Action::Lower)),
    ("barrier", |it| {
        it.object(Class::Barrier).map(Action::Barrier)
    }),
    ("put", |it| it.object(Class::Queue).map(Action::Put)),
    ("take", |it| it.object(Class::Queue).map(Action::Take)),
    ("send", |it| it.send()),
    ("reply", |it| it.reply()),
    ("receive", |it| it.receive()),
    ("write", |it| it.write()),
    ("spawn", |it| {
        references::task(&it.verb, it.scope).map(Action::Spawn)
    }),
    ("fork", |it| {
        references::task(&it.verb, it.scope).map(Action::Fork)
    }),
    ("exit", |it| it.only_true(Action::Exit)),
    ("yield", |it| it.only_true(Action::Yield)),
    ("fragment", |it| {
        fragment(&it.verb, it.scope).map(Action::Fragment)
    }),
    ("nice", |it| it.set("nice")),
    ("cpus", |it| it.set("cpus")),
    ("policy", |it| it.set("policy")),
    ("slice", |it| it.set("slice")),
    ("group", |it| it.set("group")),
    ("begin", |it| {
        references::span(&it.verb, it.scope).map(Action::Begin)
    }),
    ("end", |it| {
        references::span(&it.verb, it.scope).map(Action::End)
    }),
    ("count", |it| it.count()),
    ("recorded", |it| it.recorded().map(Action::Recorded)),
    ("repeat", |it| {
        let times = it.verb.clone();
        let index = it.fields.text("as");
        it.repeated(Some(times), None, index)
    }),
    ("each", |it| {
        let (of, except) = (
            it.required("of", "write how many there are"),
            it.fields.item("except"),
        );
        let index = it.verb.text();
        it.repeated(of, except, index)
    }),
];

/// The verbs, for who must know them all.
pub(crate) fn verbs() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|(verb, _)| *verb)
}

/// The steps in a list.
pub(super) fn list(item: Option<Item<'_>>, scope: &mut Scope<'_>) -> Vec<Step> {
    let Some(list) = item else {
        return Vec::new();
    };
    let Some(mut items) = list.list() else {
        return Vec::new();
    };
    for (index, item) in items.iter_mut().enumerate() {
        item.key = format!("{}[{index}]", list.key);
    }
    items.iter().filter_map(|item| step(item, scope)).collect()
}

fn step(item: &Item<'_>, scope: &mut Scope<'_>) -> Option<Step> {
    let fields = item.table()?;
    let Some((first, value)) = fields.entries().next() else {
        item.report(
            "this step is empty",
            "write a step such as { run = \"10ms\" }",
        );
        return None;
    };
    let Some((verb, read)) = VERBS.iter().find(|(verb, _)| *verb == first.key) else {
        let what = format!("`{}` is not a step", first.key);
        item.report(what, other_verb(&fields, &first.key));
        return None;
    };
    scope.names.uses(verb);
    let when = fields.item("when").map(|item| when(&item, scope));
    fields.know(&[*verb]);
    let place = spot(&value);
    let reader = Reader {
        fields: &fields,
        verb: value,
        scope,
    };
    let action = read(reader);
    fields.finish();
    let when = match when {
        Some(when) => Some(when?),
        None => None,
    };
    Some(Step {
        action: action?,
        when,
        spot: place,
    })
}

/// What to write where the first key of a step is no verb.
fn other_verb(fields: &Fields<'_>, first: &str) -> String {
    let is_verb = |key: &str| VERBS.iter().any(|(verb, _)| *verb == key);
    let mut later = fields
        .entries()
        .map(|(entry, _)| entry.key.as_str())
        .filter(|key| is_verb(key));
    match later.next() {
        Some(verb) => format!("write `{verb}` first"),
        None => did_you_mean(first, verbs()),
    }
}

/// `setting = word`.
fn when(item: &Item<'_>, scope: &Scope<'_>) -> Option<When> {
    let text = item.text()?;
    let Some((name, word)) = text.split_once('=') else {
        return item.wrong("a choice and one of its words, as in \"fragments = room\"");
    };
    let (name, word) = (name.trim(), word.trim());
    let Some((setting, words)) = scope.names.words.get(name) else {
        let known: Vec<&str> = scope.names.words.keys().map(String::as_str).collect();
        let help = match known.is_empty() {
            true => "declare one with `choices` in [settings]".to_owned(),
            false => did_you_mean(name, known),
        };
        item.report(format!("no setting `{name}` is a choice"), help);
        return None;
    };
    let Some(number) = words.iter().position(|it| it == word) else {
        let known = words.iter().map(String::as_str);
        item.unknown(format!("`{name}` is never \"{word}\""), word, known);
        return None;
    };
    Some(When {
        setting: SettingId(*setting),
        word: number as u32,
    })
}

/// Whether a step may be one of a row: whatever stands alone and starts, ends and repeats nothing.
fn in_a_row(step: &Step, item: &Item<'_>) -> bool {
    let may = matches!(
        step.action,
        Action::Raise(_)
            | Action::Lower(_)
            | Action::Put(_)
            | Action::Take(_)
            | Action::Send { .. }
            | Action::Receive { .. }
            | Action::Reply { .. }
            | Action::Signal { .. }
            | Action::Barrier(_)
            | Action::Yield
            | Action::Touch(_)
            | Action::Count { .. }
            | Action::Begin(_)
            | Action::End(_)
    );
    if !may {
        let help = "use raise, lower, put, take, send, receive, reply, signal, barrier, yield, touch, \
                    count, begin or end";
        item.report("this step cannot be in a row", help);
    }
    may
}

/// A fragment's number, or none.
pub(super) fn fragment(item: &Item<'_>, scope: &Scope<'_>) -> Option<Fragment> {
    match &item.node.kind {
        NodeKind::Text(text) if text == "none" => Some(Fragment::None),
        _ => scope.expr(item, &[Count]).map(Fragment::Number),
    }
}

impl<'a> Reader<'_, 'a, '_> {
    fn required(&self, key: &'static str, help: &str) -> Option<Item<'a>> {
        self.fields.required(key, help)
    }

    fn object(&self, class: Class) -> Option<crate::step::Reference> {
        references::object(&self.verb, self.scope, &[class])
    }

    fn only_true(&self, action: Action) -> Option<Action> {
        match self.verb.node.kind {
            NodeKind::Bool(true) => Some(action),
            _ => self.verb.wrong("true"),
        }
    }

    /// What a change of the task could set under the same key.
    fn set(&self, key: &str) -> Option<Action> {
        let set = changes::one(key, &self.verb, self.scope)?;
        Some(Action::Set(Box::new(set)))
    }

    fn touch(self) -> Option<Action> {
        let region = self.object(Class::Region);
        let (lines, bytes) = (self.fields.item("lines"), self.fields.item("bytes"));
        let share = match (lines, bytes) {
            (None, None) => Some(Share::Whole),
            (Some(item), None) => self.scope.expr(&item, &[Count]).map(Share::Lines),
            (None, Some(item)) => self.scope.expr(&item, &[Size]).map(Share::Bytes),
            (Some(_), Some(item)) => {
                item.report(
                    "`lines` says how much is touched already",
                    "leave one of them out",
                );
                None
            }
        };
        let first = optional(self.fields, "first", self.scope, &[Count]);
        let pattern = match self.fields.item("pattern") {
            Some(item) => self.pattern(&item),
            None => Some(Pattern::Sequential),
        };
        let write_percent = match self.fields.item("write") {
            Some(item) => self.percent(&item),
            None => Some(self.scope.constant(&spot(&self.verb), 0, Count)),
        };
        Some(Action::Touch(Box::new(Touch {
            region: region?,
            share: share?,
            first,
            pattern: pattern?,
            write_percent: write_percent?,
        })))
    }

    fn pattern(&self, item: &Item<'_>) -> Option<Pattern> {
        let text = item.text()?;
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("sequential", "") => Some(Pattern::Sequential),
            ("random", "") => Some(Pattern::Random),
            ("stride", lines) if !lines.is_empty() => {
                let lines = self.scope.text(item, &spot(item), lines, &[Count])?;
                Some(Pattern::Stride(lines))
            }
            _ => item.wrong("\"sequential\", \"random\", or \"stride 8\" for every eighth line"),
        }
    }

    /// `25%`; what is before the sign is an expression.
    fn percent(&self, item: &Item<'_>) -> Option<Expr> {
        let wanted = "a part such as \"25%\"";
        let NodeKind::Text(text) = &item.node.kind else {
            return item.wrong(wanted);
        };
        match text.trim().strip_suffix('%') {
            Some(text) => self.scope.text(item, &spot(item), text, &[Count]),
            None => item.wrong(wanted),
        }
    }

    fn timer(self) -> Option<Action> {
        let timer = self.object(Class::Timer);
        let period = self.required("period", "write period = \"10ms\"");
        let period = period.and_then(|item| amount(&item, self.scope, &[Time]));
        Some(Action::Timer {
            timer: timer?,
            period: period?,
        })
    }

    fn write(self) -> Option<Action> {
        let file = self.object(Class::File);
        let bytes = self.required("bytes", "write how much: bytes = \"4KB\"");
        let bytes = bytes.and_then(|item| self.scope.expr(&item, &[Size]));
        Some(Action::Write {
            file: file?,
            bytes: bytes?,
        })
    }

    fn wait(self) -> Option<Action> {
        let condition = self.object(Class::Condition);
        let mutex = self.required("mutex", "name the mutex that is unlocked while it waits");
        let mutex = mutex.and_then(|item| references::object(&item, self.scope, &[Class::Mutex]));
        Some(Action::Wait {
            condition: condition?,
            mutex: mutex?,
        })
    }

    fn signal(self) -> Option<Action> {
        let all = self.fields.flag("all");
        let condition = self.object(Class::Condition)?;
        Some(Action::Signal { condition, all })
    }

    fn send(self) -> Option<Action> {
        let ends = [Class::Stream, Class::Pipe, Class::Datagram];
        let to = references::object(&self.verb, self.scope, &ends);
        let bytes = self.required("bytes", "write how much: bytes = \"100B\"");
        let bytes = bytes.and_then(|item| self.scope.expr(&item, &[Size]));
        Some(Action::Send {
            to: to?,
            bytes: bytes?,
        })
    }

    fn reply(self) -> Option<Action> {
        let socket = self.object(Class::Datagram);
        let bytes = self.required("bytes", "write how much: bytes = \"64B\"");
        let bytes = bytes.and_then(|item| self.scope.expr(&item, &[Size]));
        Some(Action::Reply {
            socket: socket?,
            bytes: bytes?,
        })
    }

    fn receive(self) -> Option<Action> {
        let ends = [Class::Stream, Class::Pipe, Class::Datagram];
        let item = self.fields.item("bytes");
        let (from, class) = references::object_and_class(&self.verb, self.scope, &ends)?;
        match (class, &item) {
            (Class::Datagram, Some(item)) => {
                item.report(
                    "one datagram is received, whatever its size",
                    "leave `bytes` out",
                );
                return None;
            }
            (Class::Stream | Class::Pipe, None) => {
                self.required("bytes", "write how much: bytes = \"100B\"");
                return None;
            }
            _ => {}
        }
        let bytes = match item {
            Some(item) => Some(self.scope.expr(&item, &[Size])?),
            None => None,
        };
        Some(Action::Receive { from, bytes })
    }

    fn count(self) -> Option<Action> {
        let by = match self.fields.item("by") {
            Some(item) => self.scope.expr(&item, &[Count]),
            None => Some(self.scope.constant(&spot(&self.verb), 1, Count)),
        };
        let name = self.verb.text()?;
        let counter = self.scope.names.counter(&name);
        Some(Action::Count { counter, by: by? })
    }

    fn recorded(self) -> Option<Recorded> {
        let named = self.fields.item("steps");
        let fields = match &named {
            Some(item) => Some(item.table()?),
            None => None,
        };
        let (mut names, mut steps) = (Vec::new(), Vec::new());
        for (entry, item) in fields.iter().flat_map(Fields::entries) {
            names.push(entry.key.clone());
            steps.push(step(&item, self.scope).filter(|step| in_a_row(step, &item)));
        }
        let (known, senders) = self.senders()?;
        let text = self.verb.text()?;
        let moments = recorded::moments(&text, &names, &known).map_err(|word| {
            let what = format!("`{word}` is no moment");
            let help = "write times such as 12us, sleeps such as ~1ms and @10ms, names of `steps`, \
                        and wait<a where `wait` is a step and `a` one of `senders`";
            self.verb.report(what, help);
        });
        Some(Recorded {
            moments: moments.ok()?,
            steps: steps.into_iter().collect::<Option<_>>()?,
            senders,
        })
    }

    /// The tasks whose messages begin parts of a row, and what the row calls them.
    fn senders(&self) -> Option<(Vec<String>, Vec<TaskKindId>)> {
        let Some(item) = self.fields.item("senders") else {
            return Some(Default::default());
        };
        let fields = item.table()?;
        let sender = |(entry, item): (&Entry, Item<'_>)| {
            Some((entry.key.clone(), references::task(&item, self.scope)?.task))
        };
        let all: Vec<Option<_>> = fields.entries().map(sender).collect();
        Some(
            all.into_iter()
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .unzip(),
        )
    }

    fn repeated(
        self,
        times: Option<Item<'_>>,
        except: Option<Item<'_>>,
        index: Option<String>,
    ) -> Option<Action> {
        let times = times.and_then(|item| self.scope.expr(&item, &[Count]));
        let except = except.map(|item| self.scope.expr(&item, &[Count]));
        let body = self.required("body", "write the steps that are repeated: body = [...]");
        self.scope.push(index, &self.verb);
        let body = list(body, self.scope);
        self.scope.pop();
        let except = match except {
            Some(except) => Some(except?),
            None => None,
        };
        Some(Action::Repeat {
            times: times?,
            except,
            body,
        })
    }
}
