//! Whether all that a program says of itself fits a terminal.

/// Lines of help that are longer than 100 columns, of a command and all below it.
pub(crate) fn too_long(command: &mut clap::Command) -> Vec<String> {
    let mut found = Vec::new();
    for help in [command.render_help(), command.render_long_help()] {
        let text = help.to_string();
        let long = text.lines().filter(|line| line.chars().count() > 100);
        found.extend(long.map(|line| format!("{}: {line}", command.get_name())));
    }
    found.extend(command.get_subcommands_mut().flat_map(too_long));
    found
}
