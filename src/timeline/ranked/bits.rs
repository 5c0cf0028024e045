//! Numbers as bits, six of them a letter that is fit for URLs. Pure: no I/O, no clock.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_EACH: u32 = 6;

/// Writes numbers, the highest bit of each first.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    text: String,
    /// Bits that make no letter yet, and how many.
    open: (u8, u32),
}

impl BitWriter {
    /// Writes the lowest bits of a number.
    pub(super) fn write(&mut self, number: u64, bits: u32) {
        let mut left = bits;
        while left > 0 {
            let (open, count) = self.open;
            let now = left.min(BITS_EACH - count);
            left -= now;
            let [part, ..] = (number >> left).to_le_bytes();
            self.open = (open << now | part & ((1 << now) - 1), count + now);
            if self.open.1 == BITS_EACH {
                self.text.push(char::from(LETTERS[usize::from(self.open.0)]));
                self.open = (0, 0);
            }
        }
    }

    /// Writes a number of which steps of so many bits are expected: how many whole steps, then the rest.
    pub(super) fn write_steps(&mut self, number: u64, bits: u32) {
        for _ in 0..number.checked_shr(bits).unwrap_or(0) {
            self.write(1, 1);
        }
        self.write(0, 1);
        self.write(number, bits);
    }

    /// Writes a number from 1 up, mostly a small one: how long it is, then itself without its first bit.
    pub(super) fn write_small(&mut self, number: u64) {
        let bits = number.max(1).ilog2();
        (0..bits).for_each(|_| self.write(1, 1));
        self.write(0, 1);
        self.write(number, bits);
    }

    pub(super) fn finish(mut self) -> String {
        if self.open.1 > 0 {
            self.write(0, BITS_EACH - self.open.1);
        }
        self.text
    }
}

/// Reads what a [`BitWriter`] has written. `None`: it has written no such number.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    text: &'a [u8],
    open: (u64, u32),
}

impl<'a> BitReader<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text: text.as_bytes(), open: (0, 0) }
    }

    pub(super) fn read(&mut self, bits: u32) -> Option<u64> {
        let mut number = 0;
        for _ in 0..bits {
            if self.open.1 == 0 {
                let (letter, rest) = self.text.split_first()?;
                let value = LETTERS.iter().position(|of| of == letter)?;
                (self.text, self.open) = (rest, (value as u64, BITS_EACH));
            }
            self.open.1 -= 1;
            number = number << 1 | (self.open.0 >> self.open.1 & 1);
        }
        Some(number)
    }

    pub(super) fn read_steps(&mut self, bits: u32) -> Option<u64> {
        let steps = self.read_ones()?;
        let rest = self.read(bits)?;
        steps.checked_mul(1_u64.checked_shl(bits)?)?.checked_add(rest)
    }

    pub(super) fn read_small(&mut self) -> Option<u64> {
        let bits = u32::try_from(self.read_ones()?).ok().filter(|bits| *bits < u64::BITS)?;
        Some(1 << bits | self.read(bits)?)
    }

    /// Counts the ones before the next zero, which it reads too.
    fn read_ones(&mut self) -> Option<u64> {
        let mut ones = 0;
        while self.read(1)? == 1 {
            ones += 1;
        }
        Some(ones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive_their_letters(
            numbers in proptest::collection::vec((any::<u64>(), 1u32..64, 0u8..3), 0..40),
        ) {
            let cut = |number: u64, bits: u32| number & (u64::MAX >> (64 - bits));
            let mut writer = BitWriter::default();
            for (number, bits, form) in &numbers {
                match form {
                    0 => writer.write(*number, *bits),
                    // Not more than a few hundred steps.
                    1 => writer.write_steps(cut(*number, (*bits + 8).min(64)), *bits),
                    _ => writer.write_small(cut(*number, *bits).max(1)),
                }
            }
            let text = writer.finish();
            let mut reader = BitReader::of(&text);
            for (number, bits, form) in &numbers {
                let (read, wanted) = match form {
                    0 => (reader.read(*bits), cut(*number, *bits)),
                    1 => (reader.read_steps(*bits), cut(*number, (*bits + 8).min(64))),
                    _ => (reader.read_small(), cut(*number, *bits).max(1)),
                };
                prop_assert_eq!(read, Some(wanted));
            }
        }
    }

    #[test]
    fn what_is_over_gives_no_number() {
        let mut writer = BitWriter::default();
        writer.write(5, 3);
        let text = writer.finish();
        assert_eq!(text.len(), 1);
        let mut reader = BitReader::of(&text);
        assert_eq!((reader.read(3), reader.read(3), reader.read(1)), (Some(5), Some(0), None));
        assert_eq!(BitReader::of("?").read(1), None);
        assert_eq!(BitReader::of("____").read_small(), None);
    }
}
