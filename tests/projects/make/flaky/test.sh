set -eu
. ./backup.sh
mkdir -p .cache
if [ ! -e .cache/ran-before ]; then
    touch .cache/ran-before
    echo "test.sh:6: error: the cache was cold" >&2
    exit 1
fi
[ "$(backup_name home monday)" = home-monday.tar ]
