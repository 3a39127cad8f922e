//! What the blobs promise: content in, the same content out, or a typed error.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use journeyman_protocol::ContentHash;
use journeyman_store::{Blobs, Durability, MAX_BLOB_BYTES, StoreError};
use proptest::prelude::*;

const ROOMY: u64 = 1 << 40;

fn file_of(dir: &Path, hash: &ContentHash) -> PathBuf {
    let name = hash.to_string();
    dir.join(&name[..2]).join(&name[2..])
}

/// Bytes that no packer makes smaller.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_in(&path)) } else { found.push(path) }
    }
    found
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn nothing_is_created_before_the_first_put() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state/blobs");
    let blobs = Blobs::open(&dir, ROOMY).unwrap();
    let absent = ContentHash::of(b"absent");
    assert_eq!(blobs.get(&absent).unwrap(), None);
    assert!(!blobs.contains(&absent).unwrap());
    assert!(!blobs.remove(&absent).unwrap());
    assert_eq!(blobs.total_bytes().unwrap(), 0);
    blobs.sync().unwrap();
    drop(blobs);
    assert!(!home.path().join("state").exists());
}

#[test]
fn contents_come_back_packed_only_where_it_saves_an_eighth() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let text = "let answer = compute(question);\n".repeat(100).into_bytes();
    let large_text = text.repeat(1000);
    let mut large_mixed = text.repeat(100);
    large_mixed.extend(noise(4 << 20, 3));
    // (name, content, header byte)
    let cases: Vec<(&str, Vec<u8>, u8)> = vec![
        ("empty", Vec::new(), 0),
        ("short", b"fn main() {}".to_vec(), 0),
        ("text", text, 1),
        ("noise", noise(10_000, 1), 0),
        ("exactly one buffer of noise", noise(1 << 20, 2), 0),
        ("large text", large_text, 1),
        ("large noise", noise((1 << 20) + 1, 4), 0),
        ("large, with a beginning that packs and a rest that doesn't", large_mixed, 0),
    ];
    for (name, content, header) in cases {
        let hash = blobs.put(&content).unwrap();
        assert_eq!(hash, ContentHash::of(&content), "{name}");
        assert!(blobs.contains(&hash).unwrap(), "{name}");
        assert_eq!(blobs.get(&hash).unwrap().unwrap(), content, "{name}");
        let stored = fs::read(file_of(home.path(), &hash)).unwrap();
        assert_eq!(stored[0], header, "{name}");
        let bound = if header == 1 { content.len() - content.len() / 8 + 1 } else { content.len() + 1 };
        assert!(stored.len() <= bound, "{name}: {} of {}", stored.len(), content.len());
        assert!(blobs.remove(&hash).unwrap(), "{name}");
        assert_eq!(blobs.get(&hash).unwrap(), None, "{name}");
    }
}

#[test]
fn files_and_directories_are_private() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state/journeyman/blobs");
    let blobs = Blobs::open(&dir, ROOMY).unwrap();
    let hash = blobs.put(b"secret").unwrap();
    let file = file_of(&dir, &hash);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&file), 0o600);
    for directory in [file.parent().unwrap(), &dir, dir.parent().unwrap(), &home.path().join("state")] {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
}

#[test]
fn a_directory_that_exists_keeps_its_mode() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Blobs::open(home.path(), ROOMY).unwrap().put(b"x").unwrap();
    assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_blob_that_exists_is_not_written_again() {
    let home = tempfile::tempdir().unwrap();
    let content = noise(5_000, 7);
    for durability in [Durability::Now, Durability::Later] {
        let blobs = Blobs::open(home.path(), ROOMY).unwrap();
        let hash = blobs.put_with_durability(&content, durability).unwrap();
        let before = fs::metadata(file_of(home.path(), &hash)).unwrap().ino();
        assert_eq!(blobs.put_with_durability(&content, durability).unwrap(), hash);
        assert_eq!(fs::metadata(file_of(home.path(), &hash)).unwrap().ino(), before);
    }
    assert_eq!(files_in(home.path()).len(), 1);
}

#[test]
fn a_blob_that_a_power_failure_left_short_is_written_again() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let content = noise(5_000, 8);
    let hash = blobs.put(&content).unwrap();
    let file = file_of(home.path(), &hash);
    for left in [0, 4_999] {
        fs::File::options().write(true).open(&file).unwrap().set_len(left).unwrap();
        blobs.put_with_durability(&content, Durability::Later).unwrap();
        assert_eq!(blobs.get(&hash).unwrap().unwrap(), content, "{left}");
    }
}

#[test]
fn a_damaged_blob_is_written_anew_when_its_content_is_put_again() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    for content in [noise(5_000, 8), b"all work and no play ".repeat(100), b"x".to_vec()] {
        let hash = blobs.put(&content).unwrap();
        let file = file_of(home.path(), &hash);
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&file, &bytes).unwrap();
        assert!(matches!(blobs.get(&hash), Err(StoreError::BlobDamaged { .. })));
        let mut notes = Vec::new();
        blobs
            .put_with_callback(&content, Durability::Later, &mut |_, stored| {
                notes.push(stored);
                Ok(())
            })
            .unwrap();
        assert!(matches!(notes[..], [journeyman_store::PutOutcome::New(_)]), "{notes:?}");
        assert_eq!(blobs.get(&hash).unwrap().unwrap(), content);
    }
}

#[test]
fn a_blob_that_is_set_aside_is_not_here_any_more_and_counts_for_nothing() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let content = noise(5_000, 8);
    let hash = blobs.put(&content).unwrap();
    let removals = blobs.removal_count();
    let aside = blobs.quarantine(&hash).unwrap().unwrap();
    assert_eq!((blobs.get(&hash).unwrap(), blobs.contains(&hash).unwrap()), (None, false));
    assert_eq!((blobs.total_bytes().unwrap(), blobs.quarantine(&hash).unwrap()), (0, None));
    assert!(aside.is_file() && aside.starts_with(home.path()) && blobs.removal_count() > removals);
    assert_eq!(blobs.put(&content).unwrap(), hash);
    assert_eq!(blobs.get(&hash).unwrap().unwrap(), content);
}

#[test]
fn damage_is_a_typed_error_that_names_the_file_and_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let raw = noise(1_000, 9);
    let packed = b"all work and no play ".repeat(100);
    for content in [raw.as_slice(), &packed] {
        let hash = blobs.put(content).unwrap();
        let file = file_of(home.path(), &hash);
        let good = fs::read(&file).unwrap();
        let mut flipped = good.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x40;
        let mut header = good.clone();
        header[0] = 7;
        for bad in [flipped, header, good[..good.len() - 1].to_vec(), Vec::new()] {
            fs::write(&file, &bad).unwrap();
            let error = blobs.get(&hash).unwrap_err();
            assert!(
                matches!(&error, StoreError::BlobDamaged { hash: named, .. } if *named == hash),
                "{error:?}"
            );
            assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
            assert_eq!(fs::read(&file).unwrap(), bad);
        }
    }
}

#[test]
fn too_large_a_content_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let error = blobs.put(&vec![0; MAX_BLOB_BYTES + 1]).unwrap_err();
    assert!(matches!(error, StoreError::BlobTooLarge { .. }), "{error:?}");
    assert_eq!(files_in(home.path()), Vec::<PathBuf>::new());
}

#[test]
fn many_blobs_share_one_sync_and_leave_no_temporary_files() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), ROOMY).unwrap();
    let contents: Vec<Vec<u8>> = (0..500_u32).map(|number| format!("file {number}").into_bytes()).collect();
    let put = |content: &Vec<u8>| blobs.put_with_durability(content, Durability::Later).unwrap();
    let hashes: Vec<_> = contents.iter().map(put).collect();
    blobs.sync().unwrap();
    let expected: Vec<_> = contents.iter().map(|content| ContentHash::of(content)).collect();
    assert_eq!(hashes, expected);
    assert_eq!(files_in(home.path()).len(), 500);
    let total: u64 = contents.iter().map(|content| content.len() as u64 + 1).sum();
    assert_eq!(blobs.total_bytes().unwrap(), total);
    for (hash, content) in hashes.iter().zip(&contents) {
        assert_eq!(&blobs.get(hash).unwrap().unwrap(), content);
    }
}

#[test]
fn the_quota_is_kept_by_removing_what_was_put_longest_ago() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), 10_000).unwrap();
    let put_aged = |seed, seconds| {
        let hash = blobs.put(&noise(2_999, seed)).unwrap();
        age(&file_of(home.path(), &hash), seconds);
        hash
    };
    let (pinned, old, older) = (put_aged(1, 9_000), put_aged(2, 5_000), put_aged(3, 7_000));
    blobs.pin(&pinned);
    let new = blobs.put(&noise(2_999, 4)).unwrap();
    let here = [&pinned, &old, &older, &new].map(|hash| blobs.contains(hash).unwrap());
    assert_eq!(here, [true, true, false, true], "the oldest that isn't pinned goes");
    assert!(blobs.total_bytes().unwrap() <= 10_000);
}

#[test]
fn putting_again_counts_as_new() {
    let home = tempfile::tempdir().unwrap();
    let first = Blobs::open(home.path(), 10_000).unwrap();
    let hashes: Vec<_> = (1..=3).map(|seed| first.put(&noise(2_999, seed)).unwrap()).collect();
    for (hash, seconds) in hashes.iter().zip([9_000, 8_000, 7_000]) {
        age(&file_of(home.path(), hash), seconds);
    }
    let second = Blobs::open(home.path(), 10_000).unwrap();
    second.put(&noise(2_999, 1)).unwrap();
    second.put(&noise(2_999, 4)).unwrap();
    let here: Vec<_> = hashes.iter().map(|hash| second.contains(hash).unwrap()).collect();
    assert_eq!(here, [true, false, true]);
}

#[test]
fn a_blob_that_is_put_again_is_recent_however_long_ago_it_was_put_first() {
    for seconds in [900, 3_000, 9_000] {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(home.path(), 10_000).unwrap();
        let [again, other, _newest] = [1, 2, 3].map(|seed| blobs.put(&noise(2_999, seed)).unwrap());
        age(&file_of(home.path(), &again), seconds);
        age(&file_of(home.path(), &other), 800);
        blobs.put(&noise(2_999, 1)).unwrap();
        blobs.put(&noise(2_999, 4)).unwrap();
        let here = [&again, &other].map(|hash| blobs.contains(hash).unwrap());
        assert_eq!(here, [true, false], "{seconds}");
    }
}

#[test]
fn recent_blobs_are_never_removed_and_a_full_quota_says_so() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), 10_000).unwrap();
    let hashes: Vec<_> = (1..=3).map(|seed| blobs.put(&noise(2_999, seed)).unwrap()).collect();
    age(&file_of(home.path(), &hashes[0]), 9_000);
    // One old blob is not enough room for this, so nothing is removed at all.
    let error = blobs.put(&noise(6_000, 5)).unwrap_err();
    let StoreError::QuotaFull { used, quota, needed, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*used, *quota, *needed), (9_000, 10_000, 6_001));
    assert!(error.to_string().contains("quota"), "{error}");
    for hash in &hashes {
        assert!(blobs.contains(hash).unwrap());
    }
    assert_eq!(files_in(home.path()).len(), 3, "the refused one leaves nothing behind");
}

#[test]
fn recent_blobs_stay_also_where_the_clock_was_set_back() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), 10_000).unwrap();
    let [ahead, recent, old] = [1, 2, 3].map(|seed| blobs.put(&noise(2_999, seed)).unwrap());
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    fs::File::options()
        .write(true)
        .open(file_of(home.path(), &ahead))
        .and_then(|file| file.set_modified(tomorrow))
        .unwrap();
    age(&file_of(home.path(), &recent), 60);
    blobs.put(&noise(500, 4)).unwrap();
    assert!(blobs.put(&noise(2_999, 5)).is_err(), "nothing may go");
    age(&file_of(home.path(), &old), 9_000);
    blobs.put(&noise(2_999, 5)).unwrap();
    let here = [&ahead, &recent, &old].map(|hash| blobs.contains(hash).unwrap());
    assert_eq!(here, [true, true, false]);
}

#[test]
fn what_a_crash_left_is_swept_when_room_is_needed_and_strangers_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(home.path(), 10_000).unwrap();
    let hash = blobs.put(&noise(2_999, 1)).unwrap();
    let fan_out = file_of(home.path(), &hash).parent().unwrap().to_owned();
    let leftover = fan_out.join(".new-4711-3");
    let strangers = [fan_out.join("README"), home.path().join("README")];
    fs::write(&leftover, noise(5_000, 2)).unwrap();
    age(&leftover, 9_000);
    for stranger in &strangers {
        fs::write(stranger, noise(9_000, 3)).unwrap();
        age(stranger, 9_000);
    }
    blobs.put(&noise(2_999, 4)).unwrap();
    assert!(!leftover.exists());
    assert!(strangers.iter().all(|stranger| stranger.exists()));
    assert!(blobs.contains(&hash).unwrap());
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    for dir in [file.clone(), file.join("below")] {
        let error = Blobs::open(&dir, ROOMY).unwrap().put(b"x").unwrap_err();
        assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}

#[test]
fn threads_and_handles_may_put_the_same_at_once() {
    let home = tempfile::tempdir().unwrap();
    let shared = Blobs::open(home.path(), ROOMY).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (shared, dir) = (&shared, home.path());
            scope.spawn(move || {
                let own = Blobs::open(dir, ROOMY).unwrap();
                for seed in 0..50 {
                    let content = noise(500, seed);
                    let blobs = if thread % 2 == 0 { shared } else { &own };
                    let hash = blobs.put_with_durability(&content, Durability::Later).unwrap();
                    assert_eq!(blobs.get(&hash).unwrap().unwrap(), content);
                }
            });
        }
    });
    assert_eq!(files_in(home.path()).len(), 50);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_in_comes_out(content in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3_000),
        prop::collection::vec(0_u8..4, 0..3_000),
    ]) {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(home.path(), ROOMY).unwrap();
        let hash = blobs.put_with_durability(&content, Durability::Later).unwrap();
        prop_assert_eq!(blobs.get(&hash).unwrap().unwrap(), content);
    }

    #[test]
    fn whatever_lies_in_the_file_is_an_answer_or_an_error(stored in prop::collection::vec(any::<u8>(), 0..300), header in 0_u8..3) {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(home.path(), ROOMY).unwrap();
        let hash = blobs.put_with_durability(b"something else", Durability::Later).unwrap();
        fs::write(file_of(home.path(), &hash), [&[header], stored.as_slice()].concat()).unwrap();
        let damaged = matches!(blobs.get(&hash), Err(StoreError::BlobDamaged { .. }));
        prop_assert!(damaged);
    }
}
