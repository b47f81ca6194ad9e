# The image is one executable on a slim base: stage 1 builds it, stage 2 holds it.
FROM oven/bun:1.4.5 AS build
WORKDIR /source
COPY package.json bun.lock ./
RUN bun install --frozen-lockfile --production
COPY tsconfig.json ./
COPY scripts/build.ts scripts/
COPY db db
COPY src src
COPY views views
RUN bun run build --outfile dist/sluice

FROM debian:12-slim
# A new volume takes this over: writable by whichever user `--user` names, and closed at the first start where that is the default one.
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
