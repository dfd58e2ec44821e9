//! The tables of objects.

use std::sync::Arc;

use warmq_config::Item;
use warmq_units::Duration;

use super::names::{Headings, Names, is_name};
use super::references;
use super::scope::{Scope, spot};
use super::table::{Read, Table};
use super::values::dimensions;
use crate::expr::Expr;
use crate::keys;
use crate::object::{Arrivals, Card, Class, Family, Object, ObjectKind, Rate, Source};
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
    let table = Table {
        fields: &fields,
        keys: &[keys::of_class(class)],
        scope: &mut scope,
        spot: spot(item),
    };
    let kind = table.kind(class, name);
    table.check_the_rest();
    fields.finish();
    Some(Object {
        name: name.to_owned(),
        dimensions,
        kind: kind?,
        spot: spot(item),
    })
}

/// A table of objects.
impl Table<'_, '_, '_> {
    fn kind(&self, class: Class, name: &str) -> Option<ObjectKind> {
        Some(match class {
            Class::Region => ObjectKind::Region {
                bytes: self.get("bytes")?,
            },
            Class::Mutex => ObjectKind::Mutex,
            Class::Spinlock => ObjectKind::Spinlock(self.spinlock(name)?),
            Class::Condition => ObjectKind::Condition,
            Class::Futex => ObjectKind::Futex,
            Class::Semaphore => ObjectKind::Semaphore {
                initial: self.or("initial", 0)?,
            },
            Class::Barrier => ObjectKind::Barrier {
                tasks: self.get("tasks")?,
            },
            Class::Queue => ObjectKind::Queue {
                holds: self.get("holds")?,
            },
            Class::Pipe => ObjectKind::Pipe {
                buffer: self.or("buffer", 64 << 10)?,
            },
            Class::Stream => self.stream()?,
            Class::Datagram => ObjectKind::Datagram {
                buffer: self.get("buffer"),
            },
            Class::Source => ObjectKind::Source(self.source()?),
            Class::Group => match self.flag("autogroup") {
                true => self.autogroup()?,
                false => self.cgroup()?,
            },
            Class::Process => ObjectKind::Process,
            Class::Timer => ObjectKind::Timer {
                shared: self.flag("shared"),
                absolute: self.get("mode") == Some("absolute"),
            },
            Class::File => self.file()?,
        })
    }

    fn stream(&self) -> Option<ObjectKind> {
        let family = match self.get("family") {
            Some("unix") => Family::Unix,
            _ => Family::Inet,
        };
        if let (Family::Unix, Some(item)) = (family, self.item("nagle")) {
            let what = "Unix sockets have no segments that wait for one another";
            item.report(what, "leave `nagle` out, or `family`");
        }
        Some(ObjectKind::Stream {
            family,
            buffer: self.get("buffer"),
            nagle: self.or("nagle", 0)?,
        })
    }

    fn file(&self) -> Option<ObjectKind> {
        let path = self.fields.required("path", "write path = \"/dev/null\"")?;
        match path.text()? {
            text if text.is_empty() || text.contains('\0') => path.wrong("the path of a file"),
            path => Some(ObjectKind::File { path }),
        }
    }

    fn autogroup(&self) -> Option<ObjectKind> {
        let refuse = |key: &str, what: &str, help: &str| {
            self.item(key)
                .iter()
                .for_each(|item| item.report(what, help));
        };
        refuse(
            "weight",
            "the weight of an autogroup follows from its nice value",
            "write nice = -20 to 19 in place of it, or leave `autogroup` out",
        );
        refuse(
            "parent",
            "an autogroup is a session, and in no other group",
            "leave `parent` out, or leave `autogroup` out",
        );
        for key in ["quota", "period", "burst", "idle", "cpus"] {
            let what = format!("`{key}` needs a cgroup, and this is an autogroup");
            refuse(key, &what, "leave it out, or leave `autogroup` out");
        }
        if self.fields.find("nice").is_some() {
            self.scope.names.uses("nice");
        }
        Some(ObjectKind::Autogroup {
            nice: self.or("nice", 0)?,
        })
    }

    fn cgroup(&self) -> Option<ObjectKind> {
        if let Some(item) = self.item("nice") {
            item.report(
                "a cgroup has no nice value",
                "write weight = 1 to 10000 in place of it, or autogroup = true beside it",
            );
        }
        let weight = self.or("weight", 100);
        let parent = self.item("parent").map(|item| {
            let what = "the parent is an autogroup, and no group can be in a session";
            let help = "name a group without `autogroup`";
            references::cgroup(&item, self.scope, what, help)
        });
        let quota = self.pair(
            ("quota", "period"),
            "write quota = \"10ms\" and period = \"100ms\"",
        );
        Some(ObjectKind::Group {
            weight: weight?,
            parent: parent.flatten(),
            burst: self.burst_of_quota(quota.is_some()),
            quota,
            idle: self.idle(),
            cpus: self.used("cpus", "cpuset"),
        })
    }

    /// The value of `key`, whose truth depends on the world as `feature`.
    fn used<T: Read>(&self, key: &str, feature: &'static str) -> Option<T> {
        if self.fields.find(key).is_some() {
            self.scope.names.uses(feature);
        }
        self.get(key)
    }

    /// The burst of a quota that is there, or not.
    fn burst_of_quota(&self, has_quota: bool) -> Option<Expr> {
        let item = self.item("burst")?;
        if !has_quota {
            let help = "write quota = \"10ms\" and period = \"100ms\" beside it, or leave it out";
            item.report(
                "`burst` is what a quota leaves unused, and there is none",
                help,
            );
        }
        self.get("burst")
    }

    /// Whether the group is idle, whose weight the kernel chooses.
    fn idle(&self) -> bool {
        let idle = self.flag("idle");
        if let Some(item) = self.item("weight").filter(|_| idle) {
            let what = "the weight of an idle group is the kernel's";
            item.report(what, "leave `weight` out, or leave `idle` out");
        }
        idle
    }

    /// Two values of which neither means anything without the other.
    fn pair<A: Read, B: Read>(&self, (one, other): (&str, &str), help: &str) -> Option<(A, B)> {
        match (self.item(one), self.item(other)) {
            (Some(_), Some(_)) => {
                let (one, other) = (self.get(one), self.get(other));
                Some((one?, other?))
            }
            (None, None) => None,
            (Some(item), None) | (None, Some(item)) => {
                let what = format!("`{one}` and `{other}` belong together");
                item.report(what, help);
                None
            }
        }
    }

    fn source(&self) -> Option<Source> {
        let card: Option<&str> = self.used("card", "card");
        let arrivals = self.arrivals();
        Some(Source {
            ramp: self.ramp(&arrivals),
            arrivals: arrivals?,
            to: self.get("to")?,
            bytes: self.get("bytes")?,
            burst: self.or("burst", 1)?,
            on_off: self.pair(("on", "off"), "write on = \"1s\" and off = \"1s\""),
            start: self.get("start"),
            end: self.get("end"),
            packets: self.get("packets"),
            cpu: self.used("cpu", "cpu"),
            card: card.and_then(|name| Card::ALL.into_iter().find(|card| card.name() == name)),
            echo: self.echo(),
        })
    }

    /// The span that the source measures, if it does.
    fn echo(&self) -> Option<SpanId> {
        let help = "write echo = true and span = \"NAME\"";
        let (echo, span) = (self.flag("echo"), self.item("span"));
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
        match ["rate", "every", "gaps"].map(|key| self.item(key)) {
            [Some(_), None, None] => self.get("rate").map(Arrivals::Rate),
            [None, Some(_), None] => self.get("every").map(Arrivals::Every),
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
        let gaps = gaps.ok().filter(|gaps| gaps.iter().any(|gap| gap.0 > 0));
        gaps.or_else(|| item.wrong("times in a row, as in \"1ms 20us 1ms\""))
    }

    fn ramp(&self, arrivals: &Option<Arrivals>) -> Option<(Rate, Expr)> {
        let help = "write rate = \"1000 per s\", ramp_to = \"9000 per s\" and over = \"10s\"";
        let ramp = self.pair(("ramp_to", "over"), help)?;
        if let Some(Arrivals::Every(_) | Arrivals::Listed(_)) = arrivals {
            self.item("ramp_to")?
                .report("a ramp begins at a `rate`", help);
        }
        Some(ramp)
    }
}
