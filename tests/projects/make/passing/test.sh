set -eu
. ./backup.sh
name=$(backup_name home monday)
if [ "$name" != home-monday.tar ]; then
    echo "backup.sh:3: error: the name is '$name'" >&2
    exit 1
fi
