//! Where the program is.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

/// Which program serves.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct Program {
    /// The program that serves [default: `tideline` beside this one]
    #[arg(long, value_name = "FILE", env = "TIDELINE_PROGRAM")]
    #[serde(skip)]
    program: Option<PathBuf>,
}

impl Program {
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let path = match &self.program {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("this program doesn't know where it is; name tideline's with --program")?
                .with_file_name(format!("tideline{}", std::env::consts::EXE_SUFFIX)),
        };
        anyhow::ensure!(
            path.is_file(),
            "there is no program {}: build it (cargo build --release), or name one with --program",
            path.display()
        );
        Ok(path)
    }
}
