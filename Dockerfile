# syntax=docker/dockerfile:1
# The program `tideline` in a small image: it serves clients unless another command is named. docker-compose.cluster.yml builds and runs it;
# docs/running.md says how to run it elsewhere:
#
#   docker run --publish 127.0.0.1:3000:3000 --env TIDELINE_CLUSTER=redis://10.0.0.1,redis://10.0.0.2 \
#       --env TIDELINE_SERVER_PUBLIC_URL=https://social.example --stop-timeout 30 tideline:local

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches stay with the builder: a second build compiles only what has changed. They are no part of the image, so the
# program is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --bin tideline && strip -o /usr/local/bin/tideline target/dist/tideline

FROM debian:bookworm-slim
# For rediss://: the roots by which a server's certificate is checked.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin tideline
COPY --from=build /usr/local/bin/tideline /usr/local/bin/tideline
# By number: an orchestrator that demands a user other than root can check it.
USER 10001:10001
EXPOSE 3000
# Whether requests should be sent here; by the shell's own means, since nothing else in the image speaks HTTP. Who listens elsewhere
# than CMD says, or with TLS alone, says --no-healthcheck, or has another one.
HEALTHCHECK --interval=5s --timeout=7s --start-period=30s --retries=3 CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/3000 && printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["tideline"]
# Inside a container the loopback device is nobody's but its own.
CMD ["serve", "--listen", "0.0.0.0:3000"]
