# Stage 1 builds one executable, stage 2 puts it on a slim base. For both architectures in one go:
#   docker buildx build --platform linux/amd64,linux/arm64 .
# Bun compiles for the other architecture, so that nothing is built under emulation.
FROM --platform=$BUILDPLATFORM oven/bun:1.4.5 AS build
ARG TARGETARCH=amd64
WORKDIR /source
COPY package.json bun.lock ./
RUN bun install --frozen-lockfile --production
COPY tsconfig.json ./
COPY scripts/build.ts scripts/
COPY db db
COPY src src
COPY views views
COPY docs/clients.md docs/operating.md docs/reverse-proxies.md docs/security.md docs/
RUN bun scripts/build.ts --outfile dist/sluice --target "bun-linux-$(echo "$TARGETARCH" | sed s/amd64/x64-baseline/)"

FROM debian:12-slim
# A new volume inherits these permissions: any `--user` can write to it. The first start closes it to other users.
RUN install -d -o 65532 -g 65532 -m 1777 /data
COPY --from=build /source/dist/sluice /usr/local/bin/sluice
ENV HOST=0.0.0.0 CODEX_LB_DATA_DIR=/data HOME=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 2455 1455
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["/usr/local/bin/sluice", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["serve"]
