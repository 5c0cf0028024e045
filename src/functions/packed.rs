//! Numbers that go over the wire in one argument, each by the name that it has in the code of its function.

/// A number that is packed with others into one argument: its name in both languages, its bytes, its value.
pub(super) type PackedNumber = (&'static str, usize, u64);

/// The piece (-1) and the depth of a set that has no tree.
pub(super) const SMALL: (u32, u32) = (u32::MAX, 0);

/// The longest time that is told in six bytes: some 8,900 years.
const SPAN_MS_MAX: u64 = (1 << 48) - 1;

/// Milliseconds of a setting, of which there may be more than a number has bytes for.
pub(super) fn span_ms(ms: u64) -> u64 {
    ms.min(SPAN_MS_MAX)
}

pub(super) fn pack<const LEN: usize, const N: usize>(numbers: [PackedNumber; N]) -> [u8; LEN] {
    let (mut packed, mut at) = ([0; LEN], 0);
    for (name, width, value) in numbers {
        assert!(width == 8 || value >> (8 * width) == 0, "{name} {value} in {width} bytes");
        packed[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
        at += width;
    }
    assert_eq!(at, LEN, "each number has its place");
    packed
}

/// Reads arguments out of the code of a function.
#[cfg(test)]
pub(super) mod read {
    use super::PackedNumber;

    /// The part of a function's code between two texts, without spaces.
    pub(in crate::functions) fn between(lua: &str, from: &str, to: &str) -> String {
        let (_, rest) = lua.split_once(from).unwrap_or_else(|| panic!("`{from}` stands there"));
        let (part, _) = rest.split_once(to).unwrap_or_else(|| panic!("`{to}` stands behind `{from}`"));
        part.split_whitespace().collect()
    }

    /// The format by which a function unpacks these numbers.
    pub(in crate::functions) fn format(numbers: &[PackedNumber]) -> String {
        let letter = |(name, width, _): &PackedNumber| match (*name, *width) {
            // -1: the set is small.
            ("piece", width) => format!("i{width}"),
            (_, 1) => "B".into(),
            (_, width) => format!("I{width}"),
        };
        std::iter::once(">".to_owned()).chain(numbers.iter().map(letter)).collect()
    }

    pub(in crate::functions) fn names(numbers: &[PackedNumber]) -> String {
        numbers.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(",")
    }
}
