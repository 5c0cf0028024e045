//! A graph from a file: a line `a b` for each follow of b by a, as networks are published; also packed with gzip.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use flate2::read::MultiGzDecoder;

use super::{ACCOUNTS_MAX, FOLLOWING_MAX, FOLLOWS_MAX, Graph};

/// What a file that is packed with gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Nothing that is a follow is longer; a line without an end is not read into memory.
const LINE_MAX: u64 = 1_000;

/// Reads a graph. Accounts get numbers in the order in which they are first named.
pub(crate) fn read(file: &Path) -> anyhow::Result<Graph> {
    let opened = File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
    parse(BufReader::new(opened)).with_context(|| format!("{} is no list of follows", file.display()))
}

fn parse(mut input: impl BufRead) -> anyhow::Result<Graph> {
    if input.fill_buf()?.starts_with(&GZIP) {
        return parse_lines(BufReader::new(MultiGzDecoder::new(input)));
    }
    parse_lines(input)
}

fn parse_lines(mut input: impl BufRead) -> anyhow::Result<Graph> {
    let (mut numbers, mut follows) = (HashMap::new(), Vec::new());
    let mut line = Vec::new();
    for nth in 1_u64.. {
        line.clear();
        input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).with_context(|| format!("line {nth}"))?;
        if line.is_empty() {
            break;
        }
        ensure!(line.ends_with(b"\n") || (line.len() as u64) < LINE_MAX, "line {nth} is too long");
        let text = std::str::from_utf8(&line).with_context(|| format!("line {nth} is not text"))?.trim();
        if text.is_empty() || text.starts_with(['#', '%']) {
            continue;
        }
        let pair = pair(text).with_context(|| {
            format!("line {nth} is \"{text}\": two account numbers are needed, \"reader author\"")
        })?;
        let mut number = |account: u64| {
            let next = numbers.len();
            *numbers.entry(account).or_insert_with(|| u32::try_from(next).unwrap_or(u32::MAX))
        };
        follows.push((number(pair.0), number(pair.1)));
        ensure!(numbers.len() as u64 <= ACCOUNTS_MAX, "more than {ACCOUNTS_MAX} accounts");
        ensure!(follows.len() <= FOLLOWS_MAX, "more than {FOLLOWS_MAX} follows");
    }
    if numbers.len() < 2 {
        bail!("it names {} accounts", numbers.len());
    }
    let graph = Graph::new(numbers.len(), follows);
    let too_many = numbers.iter().find(|(_, number)| graph.following(**number).len() > FOLLOWING_MAX);
    if let Some((account, number)) = too_many {
        bail!(
            "{account} follows {} others: {FOLLOWING_MAX} are possible, as the engine allows 20,000; leave out some of \
             its lines",
            graph.following(*number).len()
        );
    }
    Ok(graph)
}

/// What stands behind the second number (a weight, a time) is of no interest.
fn pair(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    const LIST: &str = "# who follows whom\n70 5\n70\t900 1\n\n5, 70\n70 5\n5 5\n";

    fn told(list: &[u8]) -> String {
        format!("{:#}", parse(list).unwrap_err())
    }

    #[test]
    fn accounts_are_numbered_as_they_are_named() {
        let graph = parse(LIST.as_bytes()).unwrap();
        assert_eq!((graph.accounts(), graph.follows()), (3, 3));
        assert_eq!([graph.following(0), graph.following(1), graph.following(2)], [&[1, 2][..], &[0], &[]]);
    }

    #[test]
    fn a_packed_file_is_unpacked() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(LIST.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(parse(packed.as_slice()).unwrap(), parse(LIST.as_bytes()).unwrap());
        // One that was cut off is not taken for a shorter one.
        assert!(told(&packed[..packed.len() / 2]).contains("line"));
    }

    #[test]
    fn what_is_no_follow_is_refused_with_its_line() {
        assert!(told(b"1 2\n3\n").contains("line 2 is \"3\""));
        assert!(told(b"1 2\nx y\n").contains("two account numbers"));
        assert!(told(b"1 -2\n").contains("line 1"));
        assert!(told(b"\xff\xfe 1\n").contains("line 1 is not text"));
        assert!(told(b"# nothing\n").contains("it names 0 accounts"));
        assert!(told(&[b'#'; 5_000]).contains("too long"));
    }

    #[test]
    fn who_follows_more_than_the_engine_allows_is_named() {
        let list =
            |follows: usize| (1..=follows).map(|author| format!("70 {}\n", 70 + author)).collect::<String>();
        assert_eq!(parse(list(FOLLOWING_MAX).as_bytes()).unwrap().follows(), FOLLOWING_MAX);
        let told = told(list(FOLLOWING_MAX + 1).as_bytes());
        assert!(told.contains("70 follows 19001 others") && told.contains("leave out some"), "{told}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let told = format!("{:#}", read(Path::new("/nowhere/edges.txt")).unwrap_err());
        assert!(told.contains("/nowhere/edges.txt cannot be read"), "{told}");
    }
}
