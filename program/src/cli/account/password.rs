//! Passwords: drawn here, or read from whoever calls; never an argument, which others could see.

use std::fmt;

use clap::Args;
use rand::RngExt as _;

/// Letters of a password that is drawn: 95 bits.
const LETTERS: usize = 16;
/// Without letters that look alike.
const ALPHABET: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The source of a new password.
#[derive(Debug, Args)]
pub(super) struct NewPassword {
    /// Read the password from standard input: its first line [default: one is drawn, and printed].
    #[arg(long)]
    password_stdin: bool,
}

/// A password that somebody gets.
pub(super) enum GivenPassword {
    Drawn(String),
    Read(String),
}

impl NewPassword {
    pub(super) fn read(&self) -> anyhow::Result<GivenPassword> {
        if !self.password_stdin {
            let mut rng = rand::rng();
            let letters = (0..LETTERS).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]));
            return Ok(GivenPassword::Drawn(letters.collect()));
        }
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(GivenPassword::Read(line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

impl GivenPassword {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Drawn(text) | Self::Read(text) => text,
        }
    }

    /// Says a password that nobody knows yet.
    pub(super) fn tell(&self) {
        if let Self::Drawn(text) = self {
            println!("password: {text}");
        }
    }
}

impl fmt::Debug for GivenPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenPassword(..)")
    }
}
