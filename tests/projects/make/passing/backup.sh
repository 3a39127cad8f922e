# Prints the name of a backup.
backup_name() {
    echo "$1-$2.tar"
}
