//! HTTP without Mastodon: parameters as Rails reads them, pages, refusals, listeners, layers around all routes.
//!
//! Nothing here knows what an account or a post is; what knows that lies above (`entity`, `show`, `api`). Which routes
//! there are is said there, too.
//!
//! Invariants: whatever bytes a client sends, it gets an answer, never a panic; everything that a client can make grow
//! has a bound (headers, body, depth and number of parameters, connections, requests under way, time); nothing secret
//! (a query, a body, a header of a client's but a plain `X-Request-Id`) gets into a log or a metric.

pub mod address;
mod crowd;
pub mod escape;
pub mod health;
pub mod json;
pub mod layers;
pub mod listen;
pub mod page;
pub mod params;
pub mod path;
pub mod rate;
pub mod refusal;
pub mod shutdown;
pub mod time;
pub mod tls;
pub mod turns;

pub use address::{ClientAddress, Network, TrustedProxies, counted_as, is_this_machine};
pub use health::Readiness;
pub use json::Json;
pub use layers::{Layers, RequestId, RequestsUnderWay};
pub use listen::{CONNECTIONS_CUT, Listener, ListenerLimits, Peer, serve};
pub use page::{PageLimit, PageLinks, PageRequest, Paged, PagedText};
pub use params::{ParamTree, Params, Upload, UploadLimit};
pub use path::PathId;
pub use rate::RateStanding;
pub use refusal::Refusal;
pub use shutdown::Shutdown;
pub use time::{Day, Timestamp};
pub use tls::Tls;
pub use turns::LimitedTurns;
