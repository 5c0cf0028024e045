//! Whether all that a program says of itself fits a terminal.

/// Fails where a line of help of a program is longer than 100 columns.
pub(crate) fn fits_100_columns(mut command: clap::Command) {
    command.build();
    let found = too_long(&mut command);
    assert!(found.is_empty(), "{found:#?}");
}

/// The lines that are longer, of a command and all below it.
fn too_long(command: &mut clap::Command) -> Vec<String> {
    let mut found = Vec::new();
    for help in [command.render_help(), command.render_long_help()] {
        let text = help.to_string();
        let long = text.lines().filter(|line| line.chars().count() > 100);
        found.extend(long.map(|line| format!("{}: {line}", command.get_name())));
    }
    found.extend(command.get_subcommands_mut().flat_map(too_long));
    found
}
