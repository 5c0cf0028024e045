//! Archives, held to what is promised of them: each test runs with a file and with a real PostgreSQL.

mod contract;
mod copies;
mod histories;
mod model;
mod places;
mod postgres;
mod search;
mod search_bounds;
mod sqlite;
