//! Names of nested parameters: `a`, `a[b]`, `a[]`, `a[0][b]`. Pure.

/// A step from a parameter into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyStep<'a> {
    /// `[b]`
    Name(&'a str),
    /// `[]`
    Element,
}

/// Takes a name apart: the parameter itself, then the steps into it.
///
/// Whatever has no such form is a name as it stands, as in Rack: `a[`, `a[b]c`.
pub(super) fn steps(name: &str) -> (&str, Vec<KeyStep<'_>>) {
    let Some(at) = name.find('[').filter(|at| *at > 0) else { return (name, Vec::new()) };
    let (mut rest, mut steps) = (&name[at..], Vec::new());
    while !rest.is_empty() {
        let inside = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((step, behind)) = inside else { return (name, Vec::new()) };
        steps.push(if step.is_empty() { KeyStep::Element } else { KeyStep::Name(step) });
        rest = behind;
    }
    (&name[..at], steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart() {
        assert_eq!(steps("a"), ("a", vec![]));
        assert_eq!(steps("a[]"), ("a", vec![KeyStep::Element]));
        assert_eq!(steps("a[b][c]"), ("a", vec![KeyStep::Name("b"), KeyStep::Name("c")]));
        assert_eq!(steps("a[0][b]"), ("a", vec![KeyStep::Name("0"), KeyStep::Name("b")]));
        assert_eq!(steps("a[][b]"), ("a", vec![KeyStep::Element, KeyStep::Name("b")]));
    }

    #[test]
    fn what_has_no_such_form_is_a_name_as_it_stands() {
        for name in ["", "[", "[]", "[a]", "a[", "a]", "a[b", "a[b]c", "a[[b]", "é["] {
            let (root, steps) = steps(name);
            assert!(root == name && steps.is_empty() || name == "a[[b]", "{name}");
        }
    }
}
