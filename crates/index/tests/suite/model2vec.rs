//! Models of static vectors in generated directories: every layout, every type of number.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use journeyman_index::vectors::{
    Deadline, EmbedError, Embedder, EmbeddingPurpose, Model2Vec, Model2VecError, TokenizerFile,
};
use journeyman_protocol::{TokenCounter as _, Tokens};
use serde_json::{Value, json};

static NEVER: AtomicBool = AtomicBool::new(false);
const PATIENCE: Deadline<'static> = Deadline { stop: &NEVER, until: None };

/// The vocabulary of each kind of tokenizer, in order; the first entry is for unknown words.
const VOCABULARY: [&str; 6] = ["[UNK]", "read", "##er", "file", "the", "_"];
/// Rows of three numbers, all of which 16 bits represent exactly.
const ROWS: [[f32; 3]; 6] = [
    [9.0, 9.0, 9.0],
    [1.0, 0.5, -0.25],
    [-2.0, 0.0, 4.0],
    [0.5, 0.5, 0.5],
    [3.0, -1.0, 0.0],
    [0.0, 8.0, 1.0],
];

fn word_pieces() -> Value {
    let vocabulary: serde_json::Map<_, _> =
        VOCABULARY.iter().enumerate().map(|(id, token)| ((*token).to_owned(), json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

struct Tensor {
    name: &'static str,
    kind: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Encodes tensors as the format prescribes: the header's length, the header, the numbers.
fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for tensor in tensors {
        let start = data.len();
        data.extend_from_slice(&tensor.bytes);
        let told = json!({"dtype": tensor.kind, "shape": tensor.shape, "data_offsets": [start, data.len()]});
        header.insert(tensor.name.to_owned(), told);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut all = (header.len() as u64).to_le_bytes().to_vec();
    all.extend(header);
    all.extend(data);
    all
}

/// Encodes one of the few numbers above in 16 bits.
fn half(number: f32) -> u16 {
    let bits = number.to_bits();
    if number == 0.0 {
        return 0;
    }
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    (bits >> 16 & 0x8000) as u16 | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

fn table(name: &'static str, kind: &'static str, rows: &[[f32; 3]]) -> Tensor {
    let numbers = rows.iter().flatten().copied();
    let bytes = match kind {
        "F64" => numbers.flat_map(|number| f64::from(number).to_le_bytes()).collect(),
        "F32" => numbers.flat_map(f32::to_le_bytes).collect(),
        "F16" => numbers.flat_map(|number| half(number).to_le_bytes()).collect(),
        "BF16" => numbers.flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes()).collect(),
        "I8" => numbers.map(|number| (number * 4.0) as i8 as u8).collect(),
        _ => panic!("{kind}"),
    };
    Tensor { name, kind, shape: vec![rows.len(), 3], bytes }
}

fn put(directory: &Path, config: &str, told: &Value, tokenizer: &Value, tensors: &[Tensor]) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join(config), told.to_string()).unwrap();
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(directory.join("model.safetensors"), safetensors(tensors)).unwrap();
}

fn vector(model: &Model2Vec, text: &str) -> Vec<f32> {
    model.embed(&[text], EmbeddingPurpose::Document, PATIENCE).unwrap().remove(0)
}

/// Returns the mean of some rows.
fn mean(rows: &[[f32; 3]]) -> Vec<f32> {
    (0..3).map(|at| rows.iter().map(|row| row[at]).sum::<f32>() / rows.len() as f32).collect()
}

fn assert_near(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{what}: {found:?}, not {wanted:?}");
}

#[test]
fn every_type_of_number_gives_the_mean_of_the_rows() {
    let kept = tempfile::tempdir().unwrap();
    for kind in ["F64", "F32", "F16", "BF16", "I8"] {
        let directory = kept.path().join(kind);
        put(
            &directory,
            "config.json",
            &json!({"normalize": false}),
            &word_pieces(),
            &[table("embeddings", kind, &ROWS)],
        );
        let model = Model2Vec::load(&directory).unwrap();
        assert_eq!((model.name(), model.dimensions()), (format!("model2vec:{kind}").as_str(), Some(3)));
        let scale = if kind == "I8" { 4.0 } else { 1.0 };
        // `strange` is unknown, and doesn't count.
        let found = vector(&model, "The READER, strange");
        let wanted: Vec<f32> = mean(&[ROWS[4], ROWS[1], ROWS[2]]).iter().map(|value| value * scale).collect();
        assert_near(&found, &wanted, kind);
        assert_near(&vector(&model, "strange"), &[0.0; 3], kind);
        assert_near(&vector(&model, ""), &[0.0; 3], kind);
    }
}

#[test]
fn every_layout_is_found_and_normalize_is_followed() {
    let kept = tempfile::tempdir().unwrap();
    let tensors = |name| [table(name, "F32", &ROWS)];
    let sentence = "config_sentence_transformers.json";
    let normal = json!({"normalize": true});
    let inner = kept.path().join("two/0_StaticEmbedding");
    put(&kept.path().join("own"), "config.json", &normal, &word_pieces(), &tensors("embeddings"));
    put(&kept.path().join("one"), sentence, &normal, &word_pieces(), &tensors("embedding.weight"));
    put(&inner, "unused.json", &normal, &word_pieces(), &tensors("embedding.weight"));
    std::fs::write(kept.path().join("two").join(sentence), normal.to_string()).unwrap();
    let wanted = {
        let mean = mean(&[ROWS[3], ROWS[1]]);
        let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt();
        mean.iter().map(|value| value / length).collect::<Vec<f32>>()
    };
    for directory in [kept.path().join("own"), kept.path().join("one"), kept.path().join("two"), inner] {
        let model = Model2Vec::load(&directory).unwrap();
        assert_near(&vector(&model, "file read"), &wanted, &directory.display().to_string());
    }
}

#[test]
fn weights_and_mapping_are_followed() {
    let kept = tempfile::tempdir().unwrap();
    // As after quantising the vocabulary: two rows for six tokens.
    let rows = [[1.0, 0.0, 2.0], [0.0, -4.0, 1.0]];
    let mapping = [0_i64, 1, 0, 1, 0, 1];
    let weights = [1.0_f64, 2.0, 0.5, 0.25, 3.0, 1.0];
    for (wide, kind) in [(true, "F64"), (false, "F32")] {
        let directory = kept.path().join(kind);
        let places = Tensor {
            name: "mapping",
            kind: if wide { "I64" } else { "I32" },
            shape: vec![6],
            bytes: mapping
                .iter()
                .flat_map(|row| {
                    if wide { row.to_le_bytes().to_vec() } else { (*row as i32).to_le_bytes().to_vec() }
                })
                .collect(),
        };
        let weight = Tensor {
            name: "weights",
            kind,
            shape: vec![6],
            bytes: weights
                .iter()
                .flat_map(|one| {
                    if wide { one.to_le_bytes().to_vec() } else { (*one as f32).to_le_bytes().to_vec() }
                })
                .collect(),
        };
        put(
            &directory,
            "config.json",
            &json!({}),
            &word_pieces(),
            &[table("embeddings", "F32", &rows), weight, places],
        );
        let model = Model2Vec::load(&directory).unwrap();
        // read: row 1 × 2; er: row 0 × 0.5; file: row 1 × 0.25.
        let wanted = [0.5 / 3.0, (-8.0 - 1.0) / 3.0, (2.0 + 1.0 + 0.25) / 3.0];
        assert_near(&vector(&model, "reader file"), &wanted, kind);
    }
}

#[test]
fn other_kinds_of_tokenizers_are_run() {
    let kept = tempfile::tempdir().unwrap();
    let pieces: Vec<Value> = ["<unk>", "▁read", "er", "▁file", "▁the", "▁"]
        .iter()
        .enumerate()
        .map(|(at, piece)| json!([piece, -(at as f64)]))
        .collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Lowercase"}, {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false},
    });
    put(
        kept.path(),
        "config.json",
        &json!({"normalize": false}),
        &tokenizer,
        &[table("embeddings", "F32", &ROWS)],
    );
    let model = Model2Vec::load(kept.path()).unwrap();
    assert_near(&vector(&model, "Reader   the"), &mean(&[ROWS[1], ROWS[2], ROWS[4]]), "unigram");
}

#[test]
fn a_tokenizer_counts_texts_of_any_length_and_a_bad_one_falls_back() {
    let kept = tempfile::tempdir().unwrap();
    let file = kept.path().join("tokenizer.json");
    std::fs::write(&file, word_pieces().to_string()).unwrap();
    let counter = TokenizerFile::new(file, |_| Tokens(0));
    counter.check().unwrap();
    let line = "reader file\n";
    let one = counter.count(line).0;
    assert!(one >= 3, "{one}");
    assert_eq!(counter.count(&line.repeat(5_000)).0, 5_000 * one, "cut at line ends");
    assert!(counter.count(&"file ".repeat(20_000)).0.abs_diff(20_000) <= 20, "cut within a line");
    assert_eq!(counter.count(""), Tokens(0));
    for bad in ["{}", "", "[1"] {
        let file = kept.path().join("bad.json");
        std::fs::write(&file, bad).unwrap();
        let counter = TokenizerFile::new(file, |text| Tokens(text.len() as u64));
        assert!(counter.check().is_err(), "{bad}");
        assert_eq!(counter.count("four"), Tokens(4), "{bad}");
    }
}

#[test]
fn a_models_identity_does_not_depend_on_its_directory() {
    let kept = tempfile::tempdir().unwrap();
    let (one, other, third) = (kept.path().join("a"), kept.path().join("b"), kept.path().join("c"));
    let mut rows = ROWS;
    put(&one, "config.json", &json!({}), &word_pieces(), &[table("embeddings", "F32", &rows)]);
    put(&other, "config.json", &json!({}), &word_pieces(), &[table("embeddings", "F32", &rows)]);
    rows[5][2] += 1.0;
    put(&third, "config.json", &json!({}), &word_pieces(), &[table("embeddings", "F32", &rows)]);
    let identity = |directory: &Path| Model2Vec::load(directory).unwrap().identity();
    assert_eq!(identity(&one), identity(&other));
    assert_ne!(identity(&one), identity(&third));
}

#[test]
fn inconsistent_models_are_refused() {
    let kept = tempfile::tempdir().unwrap();
    let good = || vec![table("embeddings", "F32", &ROWS)];
    let with = |extra: Tensor| {
        let mut all = good();
        all.push(extra);
        all
    };
    let numbers = |name, kind, shape: Vec<usize>, bytes: Vec<u8>| Tensor { name, kind, shape, bytes };
    let mut infinite = ROWS;
    infinite[3][1] = f32::INFINITY;
    let cases: Vec<(Vec<Tensor>, &str)> = vec![
        (vec![table("embeddings", "F32", &ROWS[..5])], "5 tokens"),
        (vec![table("vectors", "F32", &ROWS)], "no tensor called"),
        (vec![numbers("embeddings", "I64", vec![6, 1], vec![0; 48])], "isn't read"),
        (vec![numbers("embeddings", "F32", vec![18], vec![0; 72])], "no table"),
        (vec![numbers("embeddings", "F32", vec![6, 0], vec![])], "vectors of 0 numbers"),
        (vec![numbers("embeddings", "I8", vec![1, 9_000], vec![0; 9_000])], "9000 numbers"),
        (vec![table("embeddings", "F32", &infinite)], "infinite or none"),
        (with(numbers("mapping", "I32", vec![6], [6_i32.to_le_bytes(); 6].concat())), "isn't among the 6"),
        (with(numbers("mapping", "I32", vec![6], [(-1_i32).to_le_bytes(); 6].concat())), "isn't among the 6"),
        (with(numbers("mapping", "I32", vec![5], [0_i32.to_le_bytes(); 5].concat())), "5 tokens"),
        (with(numbers("weights", "F32", vec![2], [1_f32.to_le_bytes(); 2].concat())), "2 tokens"),
        (with(numbers("weights", "F32", vec![6], [f32::NAN.to_le_bytes(); 6].concat())), "infinite or none"),
    ];
    for (at, (tensors, said)) in cases.into_iter().enumerate() {
        let directory = kept.path().join(at.to_string());
        put(&directory, "config.json", &json!({}), &word_pieces(), &tensors);
        let told = Model2Vec::load(&directory).unwrap_err().to_string();
        assert!(told.contains(said), "{told}, not `{said}`");
    }
}

#[test]
fn damaged_models_never_panic() {
    let kept = tempfile::tempdir().unwrap();
    put(kept.path(), "config.json", &json!({}), &word_pieces(), &[table("embeddings", "F16", &ROWS)]);
    let files = ["config.json", "tokenizer.json", "model.safetensors"];
    let whole: Vec<Vec<u8>> =
        files.iter().map(|name| std::fs::read(kept.path().join(name)).unwrap()).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut refused = 0;
    for round in 0..600 {
        let at = round % 3;
        let mut bytes = whole[at].clone();
        match round % 4 {
            0 => bytes.truncate(random.usize(..bytes.len())),
            1 => {
                let place = random.usize(..bytes.len());
                bytes.splice(place..place, [random.u8(..), random.u8(..)]);
            }
            _ => {
                let place = random.usize(..bytes.len());
                bytes[place] = random.u8(..);
            }
        }
        std::fs::write(kept.path().join(files[at]), &bytes).unwrap();
        match Model2Vec::load(kept.path()) {
            Ok(model) => {
                let found = model.embed(&["the reader_file strange"], EmbeddingPurpose::Query, PATIENCE);
                assert!(found.is_err() || found.unwrap()[0].iter().all(|value| value.is_finite()));
            }
            Err(_) => refused += 1,
        }
        std::fs::write(kept.path().join(files[at]), &whole[at]).unwrap();
    }
    assert!(refused > 200, "{refused}");
    let missing = Model2Vec::load(&kept.path().join("nothing"));
    assert!(matches!(missing, Err(Model2VecError::Missing(_))));
}

#[test]
fn embedding_stops_when_cancelled() {
    let kept = tempfile::tempdir().unwrap();
    put(kept.path(), "config.json", &json!({}), &word_pieces(), &[table("embeddings", "F32", &ROWS)]);
    let model = Model2Vec::load(kept.path()).unwrap();
    let stop = AtomicBool::new(true);
    let embed = |deadline| model.embed(&["the"], EmbeddingPurpose::Query, deadline);
    assert_eq!(embed(Deadline { stop: &stop, until: None }), Err(EmbedError::Stopped));
    assert_eq!(embed(Deadline { stop: &NEVER, until: Some(Instant::now()) }), Err(EmbedError::TooLate));
}
