//! `docs/index.schema.json` and `docs/checks.schema.json` are generated from the types of the
//! answers.

use std::path::Path;

use journeyman_host::checks::{CheckAnswer, ChecksAnswer, SetupAnswer};
use journeyman_host::index::{
    ContextAnswer, DepsAnswer, ImpactAnswer, MapAnswer, RefsAnswer, SearchAnswer, SymbolsAnswer, WhyAnswer,
};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The version of the schema: it goes up when a field is removed or changes its type.
const SCHEMA_VERSION: u32 = 1;

#[test]
fn the_schema_of_answers_is_up_to_date() {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<SearchAnswer>();
    generator.subschema_for::<RefsAnswer>();
    generator.subschema_for::<SymbolsAnswer>();
    generator.subschema_for::<DepsAnswer>();
    generator.subschema_for::<ImpactAnswer>();
    generator.subschema_for::<MapAnswer>();
    generator.subschema_for::<ContextAnswer>();
    generator.subschema_for::<WhyAnswer>();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:journeyman:index:{SCHEMA_VERSION}"),
        "version": SCHEMA_VERSION,
        "$defs": Value::Object(generator.take_definitions(true)),
    });
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/index.schema.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/index.schema.json is out of date; cargo xtask docs writes it"
    );
    // A field has one type in all answers.
    let mut types: Vec<(&str, &Value)> = Vec::new();
    collect_fields(&schema, &mut types);
    for name in ["more", "left_out", "path", "partial", "cut"] {
        let of_name: Vec<&Value> =
            types.iter().filter(|(own, _)| *own == name).map(|(_, one)| *one).collect();
        assert!(
            !of_name.is_empty() && of_name.windows(2).all(|pair| pair[0] == pair[1]),
            "{name}: {of_name:?}"
        );
    }
}

#[test]
fn the_schema_of_checks_is_up_to_date() {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<ChecksAnswer>();
    generator.subschema_for::<CheckAnswer>();
    generator.subschema_for::<SetupAnswer>();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:journeyman:checks:{SCHEMA_VERSION}"),
        "version": SCHEMA_VERSION,
        "$defs": Value::Object(generator.take_definitions(true)),
    });
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.schema.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/checks.schema.json is out of date; cargo xtask docs writes it"
    );
}

fn collect_fields<'a>(schema: &'a Value, types: &mut Vec<(&'a str, &'a Value)>) {
    if let Some(fields) = schema["properties"].as_object() {
        types.extend(fields.iter().map(|(name, field)| (name.as_str(), &field["type"])));
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|one| collect_fields(one, types)),
        Value::Array(all) => all.iter().for_each(|one| collect_fields(one, types)),
        _ => {}
    }
}
