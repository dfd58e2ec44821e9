//! Events that access memory or a device.

use warmq_config::{Fields, Item};

use super::events::{Body, Script, Steps};
use super::numbers::{ANY, LARGEST, text_or, whole, whole_or};
use super::tree::{bytes, endless, entry, list, step_with, table, text, whole as number};
use crate::object::Class;

/// The line size for which strides are computed: that of all machines that rt-app runs on.
const LINE: i64 = 64;

/// What a region looks like to the events that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    bytes: i64,
    /// From one pointer of a chain to the next, and whether in random order; none: bytes.
    chain: Option<(i64, bool)>,
}

impl Script<'_, '_> {
    /// Writes to a buffer that all instances of the thread share.
    pub(super) fn mem(&mut self, body: &Body<'_, '_>, item: &Item<'_>) -> Steps {
        let count = whole(item, ANY)?;
        let shape = Shape {
            bytes: self.global.buffer,
            chain: None,
        };
        let region = self.region(item, &format!("mem-{}", body.key), shape)?;
        let place = &item.node.place;
        let touch = |count| {
            let keys = vec![
                entry("bytes", bytes(place, count)),
                entry("write", text(place, "100%")),
            ];
            step_with("touch", text(place, region), keys)
        };
        Some(vec![match count {
            0.. => touch(count),
            _ => endless(place, vec![touch(self.global.buffer)]),
        }])
    }

    pub(super) fn memrun(&mut self, body: &Body<'_, '_>, item: &Item<'_>) -> Steps {
        let fields = item.table()?;
        let (size, count) = (needed(&fields, "size"), needed(&fields, "count"));
        let kind = fields.required("type", "write \"type\" : \"read\", \"write\" or \"chase\"");
        let kinds = [("read", 'r'), ("write", 'w'), ("chase", 'c')];
        let kind = kind.and_then(|kind| kind.choice(&kinds));
        let (size, count, kind) = (size?, count?, kind?);
        match kind {
            'c' => self.chase(body, item, &fields, size, count),
            kind => self.walk(body, item, &fields, (size, count), kind == 'w'),
        }
    }

    /// Reads or writes so many bytes one after the other.
    fn walk(
        &mut self,
        body: &Body<'_, '_>,
        item: &Item<'_>,
        fields: &Fields<'_>,
        (size, count): (i64, i64),
        writes: bool,
    ) -> Steps {
        let why = "rt-app accesses each byte, which the cache of the first level answers";
        self.remarks
            .say(item, "`memrun` accesses each line once", why);
        let (kind, shape) = (
            if writes { "write" } else { "read" },
            Shape {
                bytes: size,
                chain: None,
            },
        );
        let own = format!("memrun-{kind}-{size}-{}", body.key);
        let region = self.shared_region(item, fields, kind, &own, shape)?;
        let place = &item.node.place;
        let mut keys = vec![entry("bytes", bytes(place, count))];
        keys.extend(writes.then(|| entry("write", text(place, "100%"))));
        Some(vec![step_with("touch", text(place, region), keys)])
    }

    /// Follows a chain of pointers.
    fn chase(
        &mut self,
        body: &Body<'_, '_>,
        item: &Item<'_>,
        fields: &Fields<'_>,
        size: i64,
        count: i64,
    ) -> Steps {
        let stride = whole_or(fields, "stride", 1..=LARGEST, LINE);
        let pattern = text_or(fields, "pattern", "random");
        let (stride, random) = (stride?, pattern? != "sequential");
        // rt-app rounds the length of the chain down to a power of two.
        let pointers = (size / stride)
            .checked_ilog2()
            .map_or(0, |bits| 1_i64 << bits);
        if pointers < 2 {
            let help = "write a size of at least two strides";
            item.report("the chain has no two pointers", help);
            return None;
        }
        // As many lines as the chain has: a region of `size` would have lines without a pointer.
        let per_line = (LINE / stride).max(1);
        let shape = Shape {
            bytes: (pointers / per_line).max(1) * LINE,
            chain: Some((stride, random)),
        };
        let order = if random { "random" } else { "sequential" };
        let why = "the lines of the chain are neighbours here, in an order of our own, and loads overlap as those of any step";
        self.remarks
            .say(item, "`memrun` of type chase is nearly so", why);
        let own = format!("memrun-{order}-{stride}-{size}-{}", body.key);
        let region = self.shared_region(item, fields, "chase", &own, shape)?;
        let place = &item.node.place;
        let keys = vec![
            entry("lines", number(place, count)),
            entry("pattern", text(place, order)),
        ];
        Some(vec![step_with("touch", text(place, region), keys)])
    }

    /// The region that the event shares with others by `ref`, or that of its thread.
    fn shared_region(
        &mut self,
        item: &Item<'_>,
        fields: &Fields<'_>,
        kind: &str,
        own: &str,
        shape: Shape,
    ) -> Option<String> {
        match fields.item("ref") {
            Some(shared) => {
                let name = format!("{kind}-{}", shared.text()?);
                self.region(item, &name, shape)
            }
            None => self.region(item, own, shape),
        }
    }

    fn region(&mut self, item: &Item<'_>, name: &str, shape: Shape) -> Option<String> {
        let place = &item.node.place;
        let known = *self.regions.entry(name.to_owned()).or_insert(shape);
        if known != shape {
            let help = "write the same size, stride and pattern wherever its `ref` is";
            item.report("another event shares the buffer with other values", help);
            return None;
        }
        let keys = || vec![entry("bytes", bytes(place, shape.bytes))];
        let region = self.objects.get(Class::Region, name, name, place, keys);
        Some(region)
    }

    /// Writes so many bytes to the device, at most a buffer at a time.
    pub(super) fn iorun(&mut self, item: &Item<'_>) -> Steps {
        let (count, buffer) = (whole(item, ANY)?, self.global.buffer);
        let (place, path) = (&item.node.place, self.global.device.clone());
        let keys = || vec![entry("path", text(place, path))];
        let file = "io_device";
        let file = self.objects.get(Class::File, file, file, place, keys);
        let write = |size| {
            let size = entry("bytes", bytes(place, size));
            step_with("write", text(place, file.clone()), vec![size])
        };
        if count < 0 {
            return Some(vec![endless(place, vec![write(buffer)])]);
        }
        let mut steps = Vec::new();
        if count >= buffer {
            let whole_buffers = table(
                place,
                vec![
                    entry("repeat", number(place, count / buffer)),
                    entry("body", list(place, vec![write(buffer)])),
                ],
            );
            steps.push(whole_buffers);
        }
        if count % buffer > 0 {
            steps.push(write(count % buffer));
        }
        Some(steps)
    }
}

/// The number `key`, which must be there.
fn needed(fields: &Fields<'_>, key: &'static str) -> Option<i64> {
    let item = fields.required(key, "write a number of bytes or of accesses")?;
    whole(&item, 1..=LARGEST)
}
