//! Bodies of JSON. Read into a tree as they are parsed, so that the bounds hold before anything is big.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::tree::{Mistake, ParamNode, ParamTree};
use super::{DEPTH_MAX, KEYS_MAX};
use crate::http::refusal::Refusal;

/// The name of a list that is the whole body.
const WHOLE: &str = "_json";

/// Reads a body. One of nothing but spaces has no parameters.
pub(super) fn read(body: &[u8]) -> Result<ParamTree, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(ParamTree::default());
    }
    let bounds = Bounds { count: Cell::new(0), mistake: Cell::new(None) };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = NodeSeed { bounds: &bounds, depth: 0 }.deserialize(&mut json);
    match read.and_then(|node| json.end().map(|()| node)) {
        Ok(Some(ParamNode::Tree(tree))) => Ok(tree),
        Ok(Some(list @ ParamNode::List(_))) => Ok(ParamTree::of_nodes(vec![(WHOLE.into(), list)])),
        Ok(_) => Err(Refusal::bad_request("The body has to be an object of JSON")),
        Err(e) => Err(bounds.mistake.get().map_or_else(
            || {
                Refusal::bad_request(format!(
                    "The body is not JSON: line {}, column {}",
                    e.line(),
                    e.column()
                ))
            },
            Refusal::from,
        )),
    }
}

/// Counts so far, and what was wrong with them.
struct Bounds {
    count: Cell<usize>,
    mistake: Cell<Option<Mistake>>,
}

impl Bounds {
    fn refuse<E: serde::de::Error>(&self, mistake: Mistake) -> E {
        self.mistake.set(Some(mistake));
        E::custom("refused")
    }

    fn count_one<E: serde::de::Error>(&self) -> Result<(), E> {
        self.count.set(self.count.get() + 1);
        if self.count.get() > KEYS_MAX { Err(self.refuse(Mistake::TooMany)) } else { Ok(()) }
    }
}

/// Reads one value; `null` is none.
#[derive(Clone, Copy)]
struct NodeSeed<'b> {
    bounds: &'b Bounds,
    /// How deep it lies.
    depth: usize,
}

impl NodeSeed<'_> {
    /// The seed that reads the values inside.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth + 1 {
            depth if depth > DEPTH_MAX => Err(self.bounds.refuse(Mistake::TooDeep)),
            depth => Ok(Self { depth, ..self }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Option<ParamNode>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Option<ParamNode>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Some(ParamNode::Values(vec![flag.to_string()])))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(ParamNode::Values(vec![number.to_string()])))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(ParamNode::Values(vec![number.to_string()])))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(ParamNode::Values(vec![number.to_string()])))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(ParamNode::Values(vec![text.to_owned()])))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (inner, mut nodes) = (self.inner()?, Vec::new());
        while let Some(node) = list.next_element_seed(inner)? {
            self.bounds.count_one::<A::Error>()?;
            nodes.extend(node);
        }
        Ok(Some(ParamNode::List(nodes)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let (inner, mut nodes) = (self.inner()?, Vec::new());
        while let Some(name) = object.next_key::<String>()? {
            self.bounds.count_one::<A::Error>()?;
            let node = object.next_value_seed(inner)?;
            nodes.extend(node.map(|node| (name, node)));
        }
        Ok(Some(ParamNode::Tree(ParamTree::of_nodes(nodes))))
    }
}
