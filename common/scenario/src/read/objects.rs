//! The tables of objects.

use std::sync::Arc;

use warmq_config::{Fields, Item};
use warmq_units::Duration;

use super::names::{Headings, Names, is_name};
use super::references;
use super::scope::{Scope, spot};
use super::values::{amount, dimensions, optional, place, rate, time};
use crate::expr::{Expr, Spot};
use crate::object::{Arrivals, Card, Class, Object, ObjectKind, Source};
use crate::place::Place;
use crate::quantity::Quantity::{self, Count, Size, Time};
use crate::step::SpanId;

pub(super) fn read(headings: &Headings<'_>, names: &Names) -> Vec<Object> {
    let headings = headings.objects.iter();
    headings
        .filter_map(|(class, name, item)| object(*class, name, item, names))
        .collect()
}

fn object(class: Class, name: &str, item: &Item<'_>, names: &Names) -> Option<Object> {
    let fields = item.table()?;
    let mut scope = Scope::new(names);
    let dimensions = dimensions(&fields, &mut scope);
    let reader = Reader {
        fields: &fields,
        scope: &scope,
        spot: spot(item),
    };
    let kind = reader.kind(class);
    fields.finish();
    Some(Object {
        name: name.to_owned(),
        dimensions,
        kind: kind?,
        spot: spot(item),
    })
}

/// A table that is being read.
struct Reader<'r, 'n> {
    fields: &'r Fields<'r>,
    scope: &'r Scope<'n>,
    spot: Arc<Spot>,
}

impl Reader<'_, '_> {
    fn kind(&self, class: Class) -> Option<ObjectKind> {
        Some(match class {
            Class::Region => ObjectKind::Region {
                bytes: self.required("bytes", "write bytes = \"64KB\"", Size)?,
            },
            Class::Mutex => ObjectKind::Mutex,
            Class::Condition => ObjectKind::Condition,
            Class::Semaphore => ObjectKind::Semaphore {
                initial: self.or("initial", 0, Count)?,
            },
            Class::Barrier => ObjectKind::Barrier {
                tasks: self.required("tasks", "write how many tasks it waits for", Count)?,
            },
            Class::Queue => ObjectKind::Queue {
                holds: self.required("holds", "write how many items it holds", Count)?,
            },
            Class::Pipe => ObjectKind::Pipe {
                buffer: self.or("buffer", 64 << 10, Size)?,
            },
            Class::Stream => ObjectKind::Stream {
                buffer: self.optional("buffer", Size),
                nagle: self.fields.flag("nagle"),
            },
            Class::Datagram => ObjectKind::Datagram {
                buffer: self.optional("buffer", Size),
            },
            Class::Source => ObjectKind::Source(self.source()?),
            Class::Group => self.group()?,
            Class::Process => ObjectKind::Process,
            Class::Timer => ObjectKind::Timer {
                shared: self.fields.flag("shared"),
                absolute: self
                    .fields
                    .choice("mode", &[("relative", false), ("absolute", true)])
                    .unwrap_or(false),
            },
            Class::File => self.file()?,
        })
    }

    fn required(&self, key: &'static str, help: &str, wanted: Quantity) -> Option<Expr> {
        self.scope
            .expr(&self.fields.required(key, help)?, &[wanted])
    }

    fn optional(&self, key: &'static str, wanted: Quantity) -> Option<Expr> {
        optional(self.fields, key, self.scope, &[wanted])
    }

    fn or(&self, key: &'static str, value: i64, wanted: Quantity) -> Option<Expr> {
        match self.fields.item(key) {
            Some(item) => self.scope.expr(&item, &[wanted]),
            None => Some(self.scope.constant(&self.spot, value, wanted)),
        }
    }

    fn file(&self) -> Option<ObjectKind> {
        let path = self.fields.required("path", "write path = \"/dev/null\"")?;
        match path.text()? {
            text if text.is_empty() || text.contains('\0') => path.wrong("the path of a file"),
            path => Some(ObjectKind::File { path }),
        }
    }

    fn group(&self) -> Option<ObjectKind> {
        match self.fields.flag("autogroup") {
            true => self.autogroup(),
            false => self.cgroup(),
        }
    }

    fn autogroup(&self) -> Option<ObjectKind> {
        let fields = self.fields;
        if let Some(item) = fields.item("weight") {
            item.report(
                "the weight of an autogroup follows from its nice value",
                "write nice = -20 to 19 in place of it, or leave `autogroup` out",
            );
        }
        if let Some(item) = fields.item("parent") {
            item.report(
                "an autogroup is a session, and in no other group",
                "leave `parent` out, or leave `autogroup` out",
            );
        }
        for key in ["quota", "period", "burst", "idle", "cpus"] {
            if let Some(item) = fields.item(key) {
                item.report(
                    format!("`{key}` needs a cgroup, and this is an autogroup"),
                    "leave it out, or leave `autogroup` out",
                );
            }
        }
        if fields.find("nice").is_some() {
            self.scope.names.uses("nice");
        }
        Some(ObjectKind::Autogroup {
            nice: self.or("nice", 0, Count)?,
        })
    }

    fn cgroup(&self) -> Option<ObjectKind> {
        if let Some(item) = self.fields.item("nice") {
            item.report(
                "a cgroup has no nice value",
                "write weight = 1 to 10000 in place of it, or autogroup = true beside it",
            );
        }
        let weight = self.or("weight", 100, Count);
        let parent = self.fields.item("parent").map(|item| {
            let what = "the parent is an autogroup, and no group can be in a session";
            let help = "name a group without `autogroup`";
            references::cgroup(&item, self.scope, what, help)
        });
        let quota = self.pair("quota", "period", "quota = \"10ms\" and period = \"100ms\"");
        Some(ObjectKind::Group {
            weight: weight?,
            parent: parent.flatten(),
            burst: self.burst_of_quota(quota.is_some()),
            quota,
            idle: self.idle(),
            cpus: self.cpus(),
        })
    }

    /// The burst of a quota that is there, or not.
    fn burst_of_quota(&self, has_quota: bool) -> Option<Expr> {
        let item = self.fields.item("burst")?;
        if !has_quota {
            let help = "write quota = \"10ms\" and period = \"100ms\" beside it, or leave it out";
            item.report(
                "`burst` is what a quota leaves unused, and there is none",
                help,
            );
        }
        self.scope.expr(&item, &[Time])
    }

    /// Whether the group is idle, whose weight the kernel chooses.
    fn idle(&self) -> bool {
        let idle = self.fields.flag("idle");
        if let Some(item) = self.fields.item("weight").filter(|_| idle) {
            let what = "the weight of an idle group is the kernel's";
            item.report(what, "leave `weight` out, or leave `idle` out");
        }
        idle
    }

    fn cpus(&self) -> Option<Place> {
        let item = self.fields.item("cpus")?;
        self.scope.names.uses("cpuset");
        place(&item, self.scope)
    }

    /// Two times of which neither means anything without the other.
    fn pair(&self, first: &'static str, second: &'static str, help: &str) -> Option<(Expr, Expr)> {
        match (self.fields.item(first), self.fields.item(second)) {
            (Some(first), Some(second)) => {
                let both = [first, second].map(|item| self.scope.expr(&item, &[Time]));
                let [Some(first), Some(second)] = both else {
                    return None;
                };
                Some((first, second))
            }
            (None, None) => None,
            (Some(item), None) | (None, Some(item)) => {
                let what = format!("`{first}` and `{second}` belong together");
                item.report(what, format!("write {help}"));
                None
            }
        }
    }

    fn source(&self) -> Option<Source> {
        let to = self
            .fields
            .required("to", "name the datagram socket it sends to");
        let to = to.and_then(|item| references::object(&item, self.scope, &[Class::Datagram]));
        let bytes = self.required("bytes", "write the payload: bytes = \"64B\"", Size);
        let arrivals = self.arrivals();
        let (burst, on_off) = (
            self.or("burst", 1, Count),
            self.pair("on", "off", "on = \"1s\" and off = \"1s\""),
        );
        let ramp = self.ramp(&arrivals);
        let (start, end) = (
            time(self.fields, "start", self.scope),
            time(self.fields, "end", self.scope),
        );
        let packets = self.optional("packets", Count);
        let cpu = self.fields.item("cpu");
        if cpu.is_some() {
            self.scope.names.uses("cpu");
        }
        let card = self.fields.item("card");
        if card.is_some() {
            self.scope.names.uses("card");
        }
        let echo = self.echo();
        Some(Source {
            to: to?,
            bytes: bytes?,
            arrivals: arrivals?,
            burst: burst?,
            on_off,
            ramp,
            start,
            end,
            packets,
            cpu: cpu.and_then(|item| place(&item, self.scope)),
            card: card.and_then(|item| item.choice(&Card::NAMES)),
            echo,
        })
    }

    /// The span that the source measures, if it does.
    fn echo(&self) -> Option<SpanId> {
        let help = "write echo = true and span = \"NAME\"";
        let (echo, span) = (self.fields.flag("echo"), self.fields.item("span"));
        match (echo, span) {
            (true, Some(item)) => {
                self.scope.names.uses("echo");
                let name = item.text()?;
                if !is_name(&name) {
                    return item.wrong("a name: letters, digits, - and _");
                }
                references::new_span(&item, self.scope, &name, 0)
            }
            (true, None) => {
                let what = "a source with `echo` names the span that it measures";
                self.fields.report(what, help);
                None
            }
            (false, Some(item)) => {
                item.report("only a source with `echo` measures a span", help);
                None
            }
            (false, None) => None,
        }
    }

    fn arrivals(&self) -> Option<Arrivals> {
        let keys = ["rate", "every", "gaps"].map(|key| self.fields.item(key));
        match keys {
            [Some(item), None, None] => rate(&item, self.scope).map(Arrivals::Rate),
            [None, Some(item), None] => amount(&item, self.scope, &[Time]).map(Arrivals::Every),
            [None, None, Some(item)] => self.gaps(&item).map(Arrivals::Listed),
            _ => {
                let help = "write rate = \"5000 per s\", or every = { exponential = \"200us\" }";
                self.fields
                    .report("a source has one of `rate`, `every` and `gaps`", help);
                None
            }
        }
    }

    /// Times in a row.
    fn gaps(&self, item: &Item<'_>) -> Option<Arc<[Duration]>> {
        self.scope.names.uses("gaps");
        let text = item.text()?;
        let words = text.split_ascii_whitespace();
        let gaps: Result<Arc<[Duration]>, _> = words.map(str::parse).collect();
        let gaps = gaps.ok().filter(|it| it.iter().any(|gap| gap.0 > 0));
        gaps.or_else(|| item.wrong("times in a row, as in \"1ms 20us 1ms\""))
    }

    fn ramp(&self, arrivals: &Option<Arrivals>) -> Option<(crate::object::Rate, Expr)> {
        let (to, over) = (self.fields.item("ramp_to"), self.fields.item("over"));
        let help = "write rate = \"1000 per s\", ramp_to = \"9000 per s\" and over = \"10s\"";
        match (to, over) {
            (Some(to), Some(over)) => {
                if let Some(Arrivals::Every(_) | Arrivals::Listed(_)) = arrivals {
                    to.report("a ramp begins at a `rate`", help);
                }
                let (to, over) = (rate(&to, self.scope), self.scope.expr(&over, &[Time]));
                Some((to?, over?))
            }
            (None, None) => None,
            (Some(item), None) | (None, Some(item)) => {
                item.report("`ramp_to` and `over` belong together", help);
                None
            }
        }
    }
}
