//! Posts that are all due: how long until they have left memory, what that costs, and what is left.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::backend::{Backend, CpuEach};
use super::world::{World, memory_at_rest};
use crate::bench::Bench;
use crate::stats::count;

/// What is moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    pub(super) name: &'static str,
    pub(super) authors: u32,
    /// Of each of them.
    pub(super) posts: u32,
    pub(super) hot_posts: u32,
    pub(super) settles_within: Duration,
}

/// What was seen of it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Moved {
    pub(super) authors: u32,
    pub(super) posts: u64,
    /// Posts that were to leave, and that did.
    pub(super) due: u64,
    pub(super) left: u64,
    /// Posts counted afterwards.
    pub(super) archived: u64,
    pub(super) in_memory: u64,
    pub(super) seconds: f64,
    pub(super) posts_per_second: f64,
    #[serde(flatten)]
    pub(super) cpu: CpuEach,
    pub(super) disk_bytes: u64,
    pub(super) disk_bytes_per_post: f64,
    /// `used_memory` of all primaries: without the posts and their authors, with them, and when what was due had left.
    pub(super) empty_bytes: u64,
    pub(super) before_bytes: u64,
    pub(super) after_bytes: u64,
    /// What the keys take, with all posts and when what was due had left. That is counted key by key: buffers of
    /// clients alone, which are in the figures above, are more than a thousand posts.
    pub(super) keys_before_bytes: u64,
    pub(super) keys_after_bytes: u64,
}

impl Moved {
    /// What share of the memory is left.
    pub(super) fn ratio(&self) -> f64 {
        count(self.after_bytes) / count(self.before_bytes.max(1))
    }

    /// The same of what the keys take, without all else that servers have allocated.
    pub(super) fn ratio_of_data(&self) -> f64 {
        count(self.keys_after_bytes) / count(self.keys_before_bytes.max(1))
    }

    /// Whether all that was due has left, and nothing else; and nothing was lost.
    pub(super) fn is_right(&self) -> bool {
        (self.left, self.archived) == (self.due, self.due) && self.in_memory == self.posts - self.due
    }
}

impl Backlog {
    pub(super) async fn run(self, bench: &Bench, backend: &Backend) -> anyhow::Result<Moved> {
        bench.empty().await?;
        let mut world = World::new(bench, self.name).await?;
        let empty_bytes = memory_at_rest(bench).await?;
        eprintln!("Loading {} posts of each of {} authors.", self.posts, self.authors);
        world.fill(&vec![self.posts; self.authors as usize], &[]).await?;
        let (before_bytes, keys_before_bytes) = (memory_at_rest(bench).await?, world.keys_bytes().await?);
        world.begin_archive(backend.archive(self.name, self.settles_within).await?, self.hot_posts).await?;
        let mover = world.mover().await?;
        let due = u64::from(self.authors) * u64::from(self.posts - self.hot_posts);
        eprintln!("{due} posts leave memory.");
        let (before, began, mut left) = (backend.used(bench).await?, Instant::now(), 0);
        loop {
            let moved = mover.archive_due().await?.left;
            left += moved;
            if moved == 0 || left >= due {
                break;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu = backend.used(bench).await?.each_since(&before, left);
        let disk_bytes = world.disk_bytes().await?;
        let (archived, in_memory) = (world.archived(&mover).await?, world.posts_in_memory().await?);
        drop(mover);
        Ok(Moved {
            authors: self.authors,
            posts: u64::from(self.authors) * u64::from(self.posts),
            due,
            left,
            archived,
            in_memory,
            seconds,
            posts_per_second: count(left) / seconds,
            cpu,
            disk_bytes,
            disk_bytes_per_post: count(disk_bytes) / count(archived.max(1)),
            empty_bytes,
            before_bytes,
            after_bytes: memory_at_rest(bench).await?,
            keys_before_bytes,
            keys_after_bytes: world.keys_bytes().await?,
        })
    }
}
