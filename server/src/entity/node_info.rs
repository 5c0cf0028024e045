//! The site's description of itself for machines that know nothing of its calls.

use std::collections::BTreeMap;

use serde::Serialize;

/// Places of such descriptions: `/.well-known/nodeinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoPlaces {
    /// One in each form.
    pub links: Vec<NodeInfoPlace>,
}

/// The place of a description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoPlace {
    /// Its form.
    pub rel: &'static str,
    /// Its address.
    pub href: String,
}

/// A description: `/nodeinfo/2.0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfo {
    /// Its form: `2.0`.
    pub version: &'static str,
    /// What runs there.
    pub software: NodeInfoSoftware,
    /// What it speaks with other sites: nothing.
    pub protocols: Vec<String>,
    /// Other networks that it exchanges posts with.
    pub services: NodeInfoServices,
    /// How much it is used.
    pub usage: NodeInfoUsage,
    /// Whether anybody may come.
    #[serde(rename = "openRegistrations")]
    pub open_registrations: bool,
    /// What else is to be said.
    pub metadata: NodeInfoMetadata,
}

/// The program that runs at a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoSoftware {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// Other networks that a site exchanges posts with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoServices {
    /// From which it takes some.
    pub inbound: Vec<String>,
    /// To which it gives some.
    pub outbound: Vec<String>,
}

/// Numbers of how much a site is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoUsage {
    /// By how many: it doesn't count them.
    pub users: BTreeMap<String, u64>,
}

/// Further facts that a site tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoMetadata {
    /// What it is called.
    #[serde(rename = "nodeName")]
    pub node_name: String,
    /// The program whose interface it has, for clients that go by that.
    pub upstream: NodeInfoUpstream,
}

/// The program whose interface a site has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeInfoUpstream {
    /// What it is called.
    pub name: &'static str,
}
