//! Vectors, for those who turn them on: made with the index, asked with a query, and never by a
//! repository's wish.

use serde_json::{Value, json};

use crate::support::{House, KEY, Server, Step};

const NUMBERS: usize = 16;

/// Counts words by their first letter; customers and clients are the same to it.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; NUMBERS];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
        let word = if word == "client" { "customer" } else { word };
        vector[word.as_bytes()[0] as usize % NUMBERS] += 1.0;
    }
    vector
}

fn texts(body: &Value) -> Vec<String> {
    body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn server() -> Server {
    Server::answering(|_, seen| {
        let data: Vec<Value> = texts(&seen.body)
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "embedding": vector(text)}))
            .collect();
        Step::Refuse(200, vec![], json!({ "data": data }).to_string())
    })
}

fn shop(server: &Server) -> House {
    let house = House::new();
    house.write("src/bell.py", "def ring_bell():\n    # customer customer customer\n    return 1\n");
    house.write("src/door.py", format!("def open_door():\n    key = '{KEY}'\n    return 2\n"));
    house.configure(&format!(
        "[index]\nvectors = \"near/words\"\nvectors_query_prefix = \"query: \"\n\
         [providers.near]\nwire = \"chat\"\nbase_url = \"{}/v1\"\nkey_env = [\"NEAR_KEY\"]\n",
        server.url()
    ));
    house
}

#[test]
fn a_server_makes_them_once_and_a_query_finds_by_them() {
    let mut server = server();
    let house = shop(&server);
    let index = |arguments: &[&str]| house.jm(arguments).env("NEAR_KEY", KEY).run();
    let ran = index(&["index", "--stats"]).expect(0);
    ran.prints(&["vectors by near/words: 16 numbers each, 2 of 2 chunks", "count 0.2"]);
    let seen = server.seen();
    let sent: Vec<String> = seen.iter().flat_map(|seen| texts(&seen.body)).collect();
    assert_eq!(sent.len(), 2);
    assert!(seen.iter().all(|seen| seen.path == "/v1/embeddings"));
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert!(sent.iter().all(|text| !text.contains(KEY)), "a known secret is not sent: {sent:?}");

    let told: Value = serde_json::from_str(&index(&["index", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(told["vectors"]["embedded"], json!(2));
    assert_eq!(server.seen().len(), seen.len(), "what has a vector isn't sent again");

    // No file has the word; one is about the same thing.
    let found = index(&["search", "client client", "--explain"]).expect(0);
    assert!(found.stdout.starts_with("src/bell.py"), "{}", found.stdout);
    found.prints(&["1-3  ring_bell", "vectors 100%"]);
    assert_eq!(texts(&server.seen().last().unwrap().body), ["query: client client"]);

    server.stop();
    index(&["search", "customer"]).expect(0).says(&["vectors don't count this time", "near/words"]);
    house.write("src/new.py", "def sell():\n    return 3\n");
    let ran = index(&["index"]).expect(1);
    ran.says(&["not everything has a vector", "near/words"]).prints(&["3 files"]);
    house.configure("");
    index(&["index", "--stats"]).expect(0).prints(&["no vectors"]);
}

#[test]
fn a_repository_has_no_say_in_where_its_text_goes() {
    let (good, evil) = (server(), server());
    let house = shop(&good);
    house.write(".journeyman/config.toml", format!("[providers.near]\nbase_url = \"{}/v1\"\n", evil.url()));
    house.jm(&["index"]).env("NEAR_KEY", KEY).run().expect(0);
    assert!(evil.seen().is_empty() && !good.seen().is_empty());

    let evil_vectors = format!(
        "[index]\nvectors = \"evil/words\"\n[providers.evil]\nwire = \"chat\"\nbase_url = \"{}/v1\"\n",
        evil.url()
    );
    house.configure("");
    house.write(".journeyman/config.toml", evil_vectors);
    house.jm(&["index", "--rebuild"]).run().expect(0);
    house.jm(&["search", "customer"]).run().expect(0);
    assert!(evil.seen().is_empty());
    house.jm(&["config"]).run().expect(2).says(&["index.vectors"]);
}

#[test]
fn what_leads_nowhere_is_said() {
    let house = House::new();
    house.write("a.py", "x = 1\n");
    for (named, said) in [
        ("model2vec:/no/such/place", "there is no directory"),
        ("model2vec:.", "no model2vec model is in"),
        ("nowhere/model", "no provider is called"),
        ("anthropic/claude", "ANTHROPIC_API_KEY"),
    ] {
        let ran = house.jm(&["index"]).env("JM_INDEX_VECTORS", named).run().expect(2);
        ran.says(&["index.vectors", said]);
        house.jm(&["search", "x1"]).env("JM_INDEX_VECTORS", named).run().says(&["vectors don't count", said]);
    }
}

/// A model of four words, as a directory.
#[test]
fn a_model_on_this_machine_needs_no_server() {
    let house = House::new();
    let model = house.at("home/model");
    std::fs::create_dir(&model).unwrap();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "customer": 1, "client": 2, "door": 3}},
    });
    let header =
        json!({"embeddings": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}}).to_string();
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header.bytes());
    let rows = [0.0_f32, 0.0, 1.0, 0.0, 0.9, 0.1, 0.0, 1.0];
    tensors.extend(rows.iter().flat_map(|number| number.to_le_bytes()));
    std::fs::write(model.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(model.join("config.json"), "{\"normalize\": true}").unwrap();
    std::fs::write(model.join("model.safetensors"), tensors).unwrap();
    house.write("bell.py", "# the customer\n");
    house.write("gate.py", "# the door\n");
    house.configure("[index]\nvectors = \"model2vec:~/model\"\nvectors_weight = 0.5\n");
    house
        .jm(&["index", "--stats"])
        .run()
        .expect(0)
        .prints(&["vectors by model2vec:model: 2 numbers each, 2 of 2", "count 0.5"]);
    let found = house.jm(&["search", "client", "--explain"]).run().expect(0);
    assert!(found.stdout.starts_with("bell.py"), "{}", found.stdout);
    found.prints(&["vectors 100%"]);
}

/// llama.cpp's server, as `.ci/run` starts it. It refuses a text of more than 512 tokens, and says
/// so with status 500.
#[test]
fn a_real_server_reads_as_much_of_a_text_as_it_can() {
    let Some(address) = std::env::var("JM_TEST_EMBEDDINGS_URL").ok().filter(|url| !url.is_empty()) else {
        let required = std::env::var("JM_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!required, "JM_TEST_EMBEDDINGS_URL names no server, and nothing may be skipped");
        println!("skipped: JM_TEST_EMBEDDINGS_URL names no server");
        return;
    };
    let house = House::new();
    house.write("short.py", "def ring_bell():\n    return 1\n");
    let long: String =
        (0..40).map(|line| format!("value_{line} = compute_something({line}, other_{line})\n")).collect();
    house.write("long.py", long.repeat(2));
    house.configure(&format!(
        "[index]\nvectors = \"real/any\"\nvectors_timeout = \"60s\"\n[providers.real]\nwire = \"chat\"\nbase_url = \"{address}/v1\"\n"
    ));
    let told: Value = serde_json::from_str(&house.jm(&["index", "--json"]).run().expect(0).stdout).unwrap();
    assert_eq!(told["vectors"]["embedded"], json!(3), "{told}");
    assert!(told["vectors"]["dimensions"].as_u64().unwrap() > 100, "{told}");
    let found = house.jm(&["search", "ring the bell", "--explain"]).run().expect(0);
    found.prints(&["vectors"]);
}
