//! Commands as they go over the wire.

use std::fmt;

/// A sign and the digits of the largest number.
const DIGITS_MAX: usize = 21;

/// One Redis command with its arguments.
#[derive(Clone, Default)]
pub struct Command {
    /// Each argument as a bulk string, ready to be sent.
    encoded: Vec<u8>,
    arguments: u32,
}

impl Command {
    /// A command by its name, as in `Command::new("ZADD")`.
    #[inline]
    pub fn new(name: &str) -> Self {
        // Room for nearly every command we send: one allocation, no growth.
        let mut command = Self { encoded: Vec::with_capacity(112), arguments: 0 };
        command.push(name);
        command
    }

    /// Adds an argument: bytes, text or a number.
    #[must_use]
    #[inline]
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        arg.write(&mut self);
        self
    }

    /// Adds several arguments, as [`arg`](Self::arg) does one.
    #[must_use]
    pub fn args<A: ToArg>(self, args: impl IntoIterator<Item = A>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Adds an argument in place.
    #[inline]
    pub fn push(&mut self, arg: impl ToArg) -> &mut Self {
        arg.write(self);
        self
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        push_length(&mut self.encoded, b'$', bytes.len() as u64);
        self.encoded.extend_from_slice(bytes);
        self.encoded.extend_from_slice(b"\r\n");
        self.arguments += 1;
    }

    /// Adds the arguments of another one, its name included.
    #[doc(hidden)]
    pub fn extend(&mut self, with: &Self) {
        self.encoded.extend_from_slice(&with.encoded);
        self.arguments += with.arguments;
    }

    /// Counts its arguments, the name included.
    #[doc(hidden)]
    pub fn count(&self) -> u32 {
        self.arguments
    }

    /// Lists the arguments of the command, its name first.
    #[doc(hidden)]
    pub fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.encoded.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = read_length(rest)?;
            let (argument, behind) = after.split_at_checked(length)?;
            rest = behind.get(2..)?;
            Some(argument)
        })
    }

    /// The command's name, for error messages.
    pub(crate) fn name(&self) -> String {
        self.arguments().next().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, argument) in self.arguments().enumerate() {
            write!(f, "{}{}", if i > 0 { " " } else { "" }, argument.escape_ascii())?;
        }
        Ok(())
    }
}

/// Commands on their way to one node.
#[derive(Debug, Default)]
pub struct Pipeline {
    pub(super) encoded: Vec<u8>,
    /// Where each command ends.
    ends: Vec<usize>,
}

impl Pipeline {
    pub fn with_capacity(commands: usize) -> Self {
        Self { encoded: Vec::with_capacity(commands * 80), ends: Vec::with_capacity(commands) }
    }

    pub fn push(&mut self, command: &Command) {
        push_length(&mut self.encoded, b'*', u64::from(command.arguments));
        self.encoded.extend_from_slice(&command.encoded);
        self.ends.push(self.encoded.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A copy of one of its commands, to be sent again.
    pub(crate) fn command(&self, index: usize) -> Command {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let whole = &self.encoded[start..self.ends[index]];
        let (arguments, encoded) = read_length(whole).unwrap_or((0, &[]));
        Command { encoded: encoded.into(), arguments: u32::try_from(arguments).unwrap_or(0) }
    }
}

#[inline]
fn push_length(to: &mut Vec<u8>, sigil: u8, length: u64) {
    to.push(sigil);
    push_decimal(to, length);
    to.extend_from_slice(b"\r\n");
}

#[inline]
fn push_decimal(to: &mut Vec<u8>, number: u64) {
    let mut place = [0; DIGITS_MAX];
    to.extend_from_slice(digits(&mut place, number));
}

/// A number's digits, at the end of a place with room for a sign before them.
#[inline]
fn digits(place: &mut [u8; DIGITS_MAX], mut number: u64) -> &[u8] {
    let mut first = place.len();
    loop {
        first -= 1;
        place[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    &place[first..]
}

/// Reads back what [`push_length`] wrote: the length, and what follows the line.
fn read_length(from: &[u8]) -> Option<(usize, &[u8])> {
    let end = from.iter().position(|b| *b == b'\r')?;
    let digits = std::str::from_utf8(from.get(1..end)?).ok()?;
    Some((digits.parse().ok()?, from.get(end + 2..)?))
}

/// A value that can be an argument of a [`Command`].
pub trait ToArg {
    /// Appends itself to `command`.
    fn write(self, command: &mut Command);
}

impl ToArg for &[u8] {
    #[inline]
    fn write(self, command: &mut Command) {
        command.push_bytes(self);
    }
}

impl<const N: usize> ToArg for &[u8; N] {
    #[inline]
    fn write(self, command: &mut Command) {
        command.push_bytes(self);
    }
}

macro_rules! bytes_to_arg {
    ($($t:ty),*) => {$(
        impl ToArg for $t {
            #[inline]
            fn write(self, command: &mut Command) {
                command.push_bytes(self.as_ref());
            }
        }
    )*};
}
bytes_to_arg!(&str, &String, String, &Vec<u8>);

macro_rules! number_to_arg {
    ($($t:ty),*) => {$(
        impl ToArg for $t {
            #[inline]
            fn write(self, command: &mut Command) {
                let mut place = [0; DIGITS_MAX];
                command.push_bytes(digits(&mut place, u64::try_from(self).unwrap_or(u64::MAX)));
            }
        }
    )*};
}
number_to_arg!(u16, u32, u64, usize);

impl ToArg for i64 {
    fn write(self, command: &mut Command) {
        let mut place = [0; DIGITS_MAX];
        let mut first = DIGITS_MAX - digits(&mut place, self.unsigned_abs()).len();
        if self < 0 {
            first -= 1;
            place[first] = b'-';
        }
        command.push_bytes(&place[first..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pipeline_gives_its_commands_back(
            commands in proptest::collection::vec(proptest::collection::vec(any::<Vec<u8>>(), 1..5), 1..8)
        ) {
            let mut pipeline = Pipeline::default();
            for arguments in &commands {
                let mut command = Command::default();
                for argument in arguments {
                    command.push(argument);
                }
                pipeline.push(&command);
            }
            prop_assert_eq!(pipeline.len(), commands.len());
            for (i, arguments) in commands.iter().enumerate() {
                let command = pipeline.command(i);
                prop_assert_eq!(&command.arguments().map(<[u8]>::to_vec).collect::<Vec<_>>(), arguments);
            }
        }

        #[test]
        fn numbers_are_written_as_they_are(n: i64, u: u64) {
            let command = Command::new("X").arg(n).arg(u);
            prop_assert_eq!(format!("{command:?}"), format!("X {n} {u}"));
        }
    }

    #[test]
    fn a_command_is_what_the_protocol_says() {
        let mut pipeline = Pipeline::default();
        pipeline.push(&Command::new("SET").arg("k").arg(&[0u8, 13, 10]).arg(-7i64));
        assert_eq!(pipeline.encoded, b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\0\r\n\r\n$2\r\n-7\r\n");
    }
}
