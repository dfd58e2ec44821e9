//! What a datagram carries: its number, when it was sent, and whether it counts.

/// The fewest bytes that hold a [`Datagram`].
pub const SMALLEST: usize = 17;
/// The most bytes of a payload: one frame of Ethernet, so that no datagram is cut up.
pub const LARGEST: usize = 1472;

/// What a datagram is for. The sender alone decides, so that both ends count the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sent while Simplex does not work: nobody counts it.
    Unmeasured,
    /// Sent while Simplex works.
    Measured,
    /// The receiver may go.
    Last,
}

/// The head of a payload; what follows is padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// From 0 on, for each receiver on its own.
    pub number: u64,
    /// Nanoseconds on the clock of the measurement.
    pub sent_ns: u64,
    /// What it is for.
    pub purpose: Purpose,
}

impl Datagram {
    /// Writes this into the first [`SMALLEST`] bytes of `payload`.
    ///
    /// # Panics
    /// When `payload` is shorter.
    pub fn write(self, payload: &mut [u8]) {
        payload[0..8].copy_from_slice(&self.number.to_le_bytes());
        payload[8..16].copy_from_slice(&self.sent_ns.to_le_bytes());
        payload[16] = self.purpose as u8;
    }

    /// Reads what [`Datagram::write`] wrote; `None` for anything else.
    pub fn read(payload: &[u8]) -> Option<Datagram> {
        let word = |from: usize| Some(u64::from_le_bytes(*payload.get(from..)?.first_chunk()?));
        let purpose = match payload.get(16)? {
            0 => Purpose::Unmeasured,
            1 => Purpose::Measured,
            2 => Purpose::Last,
            _ => return None,
        };
        Some(Datagram {
            number: word(0)?,
            sent_ns: word(8)?,
            purpose,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, sent_ns: u64, which in 0_usize..3, padding in 0_usize..99) {
            let purpose = [Purpose::Unmeasured, Purpose::Measured, Purpose::Last][which];
            let datagram = Datagram { number, sent_ns, purpose };
            let mut payload = vec![0xff; SMALLEST + padding];
            datagram.write(&mut payload);
            prop_assert_eq!(Datagram::read(&payload), Some(datagram));
        }

        #[test]
        fn a_stranger_is_told_from_a_datagram(payload in prop::collection::vec(any::<u8>(), 0..SMALLEST)) {
            prop_assert_eq!(Datagram::read(&payload), None);
        }
    }
}
