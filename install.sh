#!/bin/sh
# Installs a Sluice release: downloads the program for this machine, verifies its checksum, and puts it into a folder.
#   sh install.sh https://example.com/sluice/0.1.0        the address that holds SHA256SUMS and the programs
#   sh install.sh --to /usr/local/bin https://example.com/sluice/0.1.0
set -eu

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

usage() {
  cat <<'TEXT'
Usage: sh install.sh [--to FOLDER] ADDRESS

ADDRESS  where the release is: the folder with SHA256SUMS (https://, http://localhost or file://)
--to     where the program goes (default: ~/.local/bin)
TEXT
}

main() {
  folder="${HOME:-}/.local/bin"
  address=
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --to) [ $# -ge 2 ] || fail '--to needs a folder.'; folder=$2; shift ;;
      -*) fail "Unknown option $1. Try --help." ;;
      *) [ -z "$address" ] || fail 'Give one address only.'; address=${1%/} ;;
    esac
    shift
  done
  [ -n "$address" ] || { usage >&2; exit 2; }
  case $address in
    https://* | file://* | http://localhost[:/]* | http://127.0.0.1[:/]*) ;;
    *) fail "The address must start with https://: without TLS, both the program and its checksum could be replaced on the way." ;;
  esac

  name=$(program_name)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' INT TERM HUP

  download "$address/SHA256SUMS" "$work/SHA256SUMS"
  grep -q " $name\$" "$work/SHA256SUMS" || fail "This release has no $name."
  printf 'Downloading %s\n' "$name"
  download "$address/$name" "$work/$name"
  grep " $name\$" "$work/SHA256SUMS" >"$work/expected"
  verify || fail "The checksum of $name does not match. Nothing was installed."
  gzip -dc "$work/$name" >"$work/sluice" || fail "$name could not be unpacked. Nothing was installed."
  chmod 755 "$work/sluice"
  version=$("$work/sluice" version) || fail "$name does not run on this machine. Nothing was installed."

  mkdir -p "$folder"
  # In the same folder first, so that the rename replaces a running program in one step.
  cp "$work/sluice" "$folder/.sluice.new"
  mv -f "$folder/.sluice.new" "$folder/sluice"
  printf 'Installed Sluice %s to %s\n' "$version" "$folder/sluice"
  case ":$PATH:" in
    *":$folder:"*) printf 'Start it with: sluice serve\n' ;;
    *) printf 'Start it with: %s serve\n' "$folder/sluice" ;;
  esac
}

program_name() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "There is no installer for $(uname -s). Download the program by hand." ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "There is no program for $(uname -m). Sluice runs on x86-64 and ARM64." ;;
  esac
  libc=
  if [ "$os" = linux ] && [ ! -e /lib64/ld-linux-x86-64.so.2 ] && [ ! -e /lib/ld-linux-aarch64.so.1 ]; then
    for loader in /lib/ld-musl-*; do
      [ ! -e "$loader" ] || libc=-musl
    done
  fi
  printf 'sluice-%s-%s%s.gz\n' "$os" "$arch" "$libc"
}

download() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --retry 2 -o "$2" "$1" || fail "$1 could not be downloaded."
  elif command -v wget >/dev/null 2>&1; then
    wget -qO "$2" "$1" || fail "$1 could not be downloaded."
  else
    fail 'Install curl or wget first.'
  fi
}

verify() {
  if command -v sha256sum >/dev/null 2>&1; then
    (cd "$work" && sha256sum -c expected >/dev/null 2>&1)
  elif command -v shasum >/dev/null 2>&1; then
    (cd "$work" && shasum -a 256 -c expected >/dev/null 2>&1)
  else
    fail 'Install sha256sum or shasum first.'
  fi
}

main "$@"
