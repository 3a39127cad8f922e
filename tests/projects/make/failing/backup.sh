# Prints the name of a backup.
backup_name() {
    echo "$2-$1.tar"
}
