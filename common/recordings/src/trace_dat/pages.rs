//! The pages of a CPU, compressed or not.

use std::cell::RefCell;
use std::rc::Rc;

use super::options::{CpuData, Options};
use crate::damage::Damage;
use crate::input::{Input, Stream};
use crate::order::Order;
use crate::unpack::unpack;

/// No chunk is longer, in bytes, packed or not.
const LONGEST: u32 = 1 << 28;

/// Pages one after the other. They end where the file is damaged, which is noted.
pub(super) struct Pages {
    stream: Stream,
    page: usize,
    /// Of compressed pages: how many chunks follow, and the chunk that was unpacked last.
    chunks: Option<(u32, Vec<u8>, usize)>,
    packed_by: String,
    order: Order,
    damage: Rc<RefCell<Option<Damage>>>,
}

impl Pages {
    /// Those of a CPU.
    pub fn of(
        input: &Input,
        cpu: &CpuData,
        options: &Options,
        page: usize,
        order: Order,
        damage: &Rc<RefCell<Option<Damage>>>,
    ) -> Pages {
        let packed = cpu.length > 0 && options.buffers.iter().any(|buffer| buffer.packed);
        // The number of chunks before them is not counted.
        let length = cpu.length.saturating_add(if packed { 4 } else { 0 });
        let mut stream = input.from(cpu.offset, cpu.offset.saturating_add(length));
        let mut met = None;
        if stream.left() < length {
            let what = format!(
                "the events of CPU {} end here: the file is cut off",
                cpu.cpu
            );
            met = Some(Damage::at(input.length(), what));
        }
        let chunks = packed.then(|| {
            let chunks = stream.word(order).unwrap_or(0);
            (chunks, Vec::new(), 0)
        });
        if met.is_some() {
            *damage.borrow_mut() = met;
        }
        Pages {
            stream,
            page,
            chunks,
            packed_by: options.packed_by.clone(),
            order,
            damage: Rc::clone(damage),
        }
    }

    fn page(&mut self) -> Result<Option<Vec<u8>>, Damage> {
        let Some((chunks, chunk, at)) = &mut self.chunks else {
            // Half a page is none.
            return match self.stream.left() < self.page as u64 {
                true => Ok(None),
                false => Ok(Some(self.stream.take(self.page)?.to_vec())),
            };
        };
        while chunk.len() - *at < self.page {
            if *chunks == 0 {
                return Ok(None);
            }
            *chunks -= 1;
            let offset = self.stream.offset();
            let (packed, unpacked) = (self.stream.word(self.order)?, self.stream.word(self.order)?);
            if packed > LONGEST || unpacked > LONGEST {
                return Err(Damage::at(offset, "a compressed chunk cannot be so long"));
            }
            let bytes = self.stream.take(packed as usize)?;
            let bytes = unpack(bytes, &self.packed_by, unpacked as usize);
            chunk.drain(..*at);
            *at = 0;
            chunk.extend(bytes.map_err(|why| Damage::at(offset, why))?);
        }
        *at += self.page;
        Ok(Some(chunk[*at - self.page..*at].to_vec()))
    }
}

impl Iterator for Pages {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.page().unwrap_or_else(|damage| {
            self.damage.borrow_mut().get_or_insert(damage);
            self.chunks = None;
            self.stream.skip(u64::MAX);
            None
        })
    }
}
