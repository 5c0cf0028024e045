# syntax=docker/dockerfile:1
# The `tideline` program in a small image. docker-compose.cluster.yml builds and runs it.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches stay with the builder: a second build compiles only what has changed. They are no part of the image, so the
# program is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin tideline && cp target/release/tideline /usr/local/bin/tideline

FROM debian:bookworm-slim
# For rediss://: the roots by which a server's certificate is checked.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin tideline
COPY --from=build /usr/local/bin/tideline /usr/local/bin/tideline
# By number: an orchestrator that demands a user other than root can check it.
USER 10001:10001
ENTRYPOINT ["tideline"]
CMD ["--help"]
