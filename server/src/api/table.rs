//! The table of operations, as `api` writes it: routes of it for the server, and what is told of them for tests.

/// Declares operations, group by group: a method, a path, who handles it, who may ask, what can be said with it, what
/// it does, in a few words, and which statuses it answers with beside those that follow from all that.
///
/// Only the first three are built into the server. The others are what `docs/openapi.json` and `docs/operations.md` are
/// made of (`contract`), beside what the types of a handler say: what it answers, whether it looks at who asks, and at
/// parameters. Tests hold all of it against what a server answers.
macro_rules! operations {
    ($($group:literal {
        $($method:ident $path:literal $handler:path, $access:expr, [$($params:expr),*],
            $does:literal $(, $status:literal)*;)*
    })*) => {
        /// The routes of all operations.
        fn table() -> axum::Router<crate::app::Shared> {
            axum::Router::new()$($(.route($path, operations!(@$method $handler)))*)*
        }

        /// All operations, as they are told of.
        #[cfg(test)]
        fn operations() -> Vec<contract::Operation> {
            use contract::{Access::*, PAGE, handled_by};
            vec![$($(contract::Operation {
                group: $group,
                method: stringify!($method),
                path: $path,
                access: $access,
                params: contract::parameters_of(&[$($params),*]),
                does: $does,
                statuses: &[$($status),*],
                handler: handled_by($handler),
            }),*),*]
        }
    };
    (@GET $handler:path) => { axum::routing::get($handler) };
    (@POST $handler:path) => { axum::routing::post($handler) };
    (@PUT $handler:path) => { axum::routing::put($handler) };
    (@PATCH $handler:path) => { axum::routing::patch($handler) };
    (@DELETE $handler:path) => { axum::routing::delete($handler) };
}

pub(super) use operations;
