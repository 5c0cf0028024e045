//! Parameters as a tree of texts, lists and named ones; and how it is asked.

use bytes::Bytes;

use super::key::{KeyStep, steps};
use super::{DEPTH_MAX, KEYS_MAX};

/// A file that came with a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// What the client says that it is: to be believed by nobody.
    pub content_type: Option<String>,
    /// Its content.
    pub bytes: Bytes,
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParamNode {
    /// A value, as text; each time that it is given. Never empty: the last one counts.
    Values(Vec<String>),
    File(Upload),
    List(Vec<ParamNode>),
    Tree(ParamTree),
}

/// The reason why parameters are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    TooDeep,
    TooMany,
    NotUtf8,
    TwoKinds,
}

/// Parameters by name. Every getter takes a name (`status`) or the path of a nested one (`source[privacy]`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParamTree(Vec<(String, ParamNode)>);

impl ParamTree {
    fn child(&self, name: &str) -> Option<&ParamNode> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    fn node(&self, path: &str) -> Option<&ParamNode> {
        let (root, steps) = steps(path);
        let mut node = self.child(root)?;
        for step in steps {
            node = match (step, node) {
                (KeyStep::Name(name), ParamNode::Tree(tree)) => tree.child(name)?,
                // The path of a list is written either way.
                (KeyStep::Element, ParamNode::List(_) | ParamNode::Values(_)) => node,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Whether there is a parameter of that name, with whatever value.
    pub fn has(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of all parameters, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The text of a parameter; of several ones of that name the last. A number or a flag of JSON is its text, `null`
    /// is no parameter. `None` too for a list, an object, a file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.node(name).and_then(ParamNode::text)
    }

    /// The text of a parameter; `None`: there is none, or it is empty or only blank.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    /// All texts of a parameter: a list's (`x[]`, JSON's), each of a name that is repeated, or the one.
    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.node(name) {
            Some(ParamNode::Values(texts)) => texts.clone(),
            Some(node) => node.elements().filter_map(ParamNode::text).map(str::to_owned).collect(),
            None => Vec::new(),
        }
    }

    /// A parameter as a flag, as Rails has it: `false`, `0`, `f`, `off` are `false`, an empty text is none, all others
    /// are `true`.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let text = self.text(name)?;
        let is_false = ["false", "f", "0", "off"].iter().any(|word| text.eq_ignore_ascii_case(word));
        (!text.is_empty()).then_some(!is_false)
    }

    /// A parameter as a whole number; `None` for what is none.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.trim().parse().ok()
    }

    /// A parameter as an id: digits. `None` for everything else, 0 too.
    pub fn id(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(id)
    }

    /// All ids among the texts of a parameter, in their order; what is none is left out.
    pub fn ids(&self, name: &str) -> Vec<u64> {
        self.texts(name).iter().filter_map(|text| id(text)).collect()
    }

    /// The parameters inside a parameter: `a[b]=`, an object of JSON.
    pub fn tree(&self, name: &str) -> Option<&Self> {
        match self.node(name)? {
            ParamNode::Tree(tree) => Some(tree),
            _ => None,
        }
    }

    /// The trees of a list: `a[0][b]=` by number, `a[][b]=`, a list of objects of JSON.
    pub fn trees(&self, name: &str) -> Vec<&Self> {
        let elements = self.node(name).into_iter().flat_map(ParamNode::elements);
        let trees = elements.filter_map(|node| match node {
            ParamNode::Tree(tree) => Some(tree),
            _ => None,
        });
        trees.collect()
    }

    /// A file that was uploaded.
    pub fn file(&self, name: &str) -> Option<&Upload> {
        match self.node(name)? {
            ParamNode::File(file) => Some(file),
            _ => None,
        }
    }

    /// Puts others over these, name by name.
    pub(super) fn replace_with(&mut self, others: Self) {
        self.0.retain(|(name, _)| others.child(name).is_none());
        self.0.extend(others.0);
    }

    pub(super) fn of_nodes(nodes: Vec<(String, ParamNode)>) -> Self {
        let mut tree = Self(Vec::with_capacity(nodes.len()));
        for (name, node) in nodes {
            match tree.0.iter_mut().find(|(known, _)| *known == name) {
                // As in JSON: the last of one name counts.
                Some((_, known)) => *known = node,
                None => tree.0.push((name, node)),
            }
        }
        tree
    }

    fn slot(&mut self, name: &str) -> Option<&mut ParamNode> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// Puts a value where a name's steps lead.
    fn put(&mut self, name: &str, steps: &[KeyStep<'_>], value: ParamNode) -> Result<(), Mistake> {
        match self.slot(name) {
            Some(node) => node.put(steps, value),
            None => {
                let node = ParamNode::new(steps, value);
                self.0.push((name.to_owned(), node));
                Ok(())
            }
        }
    }

    fn has_at(&self, name: &str, steps: &[KeyStep<'_>]) -> bool {
        match (self.child(name), steps) {
            (None, _) => false,
            (Some(ParamNode::Tree(tree)), [KeyStep::Name(next), rest @ ..]) => tree.has_at(next, rest),
            // A list in an element goes on, as in Rack.
            (Some(ParamNode::List(_)), [KeyStep::Element, ..]) => false,
            (Some(_), _) => true,
        }
    }
}

impl ParamNode {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Values(texts) => texts.last().map(String::as_str),
            _ => None,
        }
    }

    /// The elements of a list; those of a tree whose names are all numbers, by these; nothing of others.
    fn elements(&self) -> impl Iterator<Item = &Self> {
        let elements: Vec<&Self> = match self {
            Self::List(nodes) => nodes.iter().collect(),
            Self::Tree(tree) => {
                let numbered = tree.0.iter().map(|(name, node)| Some((name.parse::<u64>().ok()?, node)));
                let mut numbered: Vec<_> = numbered.collect::<Option<_>>().unwrap_or_default();
                numbered.sort_by_key(|(number, _)| *number);
                numbered.into_iter().map(|(_, node)| node).collect()
            }
            Self::Values(_) | Self::File(_) => Vec::new(),
        };
        elements.into_iter()
    }

    fn new(steps: &[KeyStep<'_>], value: Self) -> Self {
        steps.iter().rfold(value, |node, step| match step {
            KeyStep::Name(name) => Self::Tree(ParamTree(vec![((*name).to_owned(), node)])),
            KeyStep::Element => Self::List(vec![node]),
        })
    }

    fn put(&mut self, steps: &[KeyStep<'_>], value: Self) -> Result<(), Mistake> {
        match (self, steps) {
            (Self::Values(known), []) => match value {
                Self::Values(more) => known.extend(more),
                _ => return Err(Mistake::TwoKinds),
            },
            (known @ Self::File(_), []) if matches!(value, Self::File(_)) => *known = value,
            (Self::Tree(tree), [KeyStep::Name(name), rest @ ..]) => tree.put(name, rest, value)?,
            (Self::List(nodes), [KeyStep::Element, rest @ ..]) => match (nodes.last_mut(), rest) {
                // `a[][b]=1&a[][c]=2` is one element, until one of its names comes again.
                (Some(Self::Tree(last)), [KeyStep::Name(name), rest @ ..]) if !last.has_at(name, rest) => {
                    last.put(name, rest, value)?;
                }
                _ => nodes.push(Self::new(rest, value)),
            },
            _ => return Err(Mistake::TwoKinds),
        }
        Ok(())
    }
}

/// A tree that is being filled, within the bounds.
#[derive(Debug, Default)]
pub(super) struct Filling {
    tree: ParamTree,
    count: usize,
}

impl Filling {
    /// Puts a value under a name, which may be that of a nested one.
    pub(super) fn put(&mut self, name: &str, value: ParamNode) -> Result<(), Mistake> {
        let (root, steps) = steps(name);
        if root.is_empty() {
            return Ok(());
        }
        if steps.len() >= DEPTH_MAX {
            return Err(Mistake::TooDeep);
        }
        self.count += 1;
        if self.count > KEYS_MAX {
            return Err(Mistake::TooMany);
        }
        self.tree.put(root, &steps, value)
    }

    pub(super) fn tree(self) -> ParamTree {
        self.tree
    }
}

fn id(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten().filter(|id| *id > 0)
}
