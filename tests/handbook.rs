//! The sample handbook, asked as people would: each document by three questions in its language and one
//! that mixes languages, through everything from the folder to the hit.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and what was missed is worth knowing"
)]

use std::path::Path;

use chrono::Utc;
use resdex::chunk::chunk;
use resdex::config::Limits;
use resdex::extract::{Extraction, extract};
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore as _};
use resdex::model::{Body, Content, Outcome, Resource, ServerName, Snapshot};
use resdex::search::{Request, search};
use resdex::source::files::{FilesOptions, FilesServer};
use rmcp::ServiceExt as _;
use rmcp::model::{ReadResourceRequestParams, ResourceContents};
use serde::Deserialize;

/// The least share of questions whose document comes first, and among the first three.
const FIRST: f64 = 0.95;
const IN_THREE: f64 = 0.99;

#[derive(Deserialize)]
struct Questions {
    documents: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    expect: String,
    questions: Vec<String>,
    mixed: String,
}

/// What the index would hold of the folder, read through MCP.
async fn entries(folder: &Path) -> Vec<Entry> {
    let server = ServerName::new("handbook").unwrap();
    let files = FilesServer::new(folder.to_owned(), "handbook", FilesOptions::default()).unwrap();
    let client = ().serve(files.connect()).await.unwrap();
    let mut entries = vec![];
    for listed in client.list_all_resources().await.unwrap() {
        let read = client.read_resource(ReadResourceRequestParams::new(listed.uri.clone()));
        let contents = read.await.unwrap().contents.into_iter().map(|content| match content {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Content { left_out: None, uri, mime_type, body: Body::Text(text) }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Content { left_out: None, uri, mime_type, body: Body::Blob(blob) }
            }
            other => panic!("{other:?}"),
        });
        let snapshot = Snapshot::new(contents.collect());
        let resource = Resource {
            name: listed.name.clone(),
            title: listed.title.clone(),
            description: listed.description.clone(),
            mime_type: listed.mime_type.clone(),
            ..Resource::new(listed.uri.as_str())
        };
        let Extraction::Document(document) = extract(&resource, &snapshot, &Limits::default())
        else {
            panic!("{} has no text", listed.uri)
        };
        entries.push(Entry {
            server: server.clone(),
            resource,
            mime_type: Some(document.mime_type.clone()),
            content_hash: snapshot.hash,
            fingerprint: fingerprint(),
            outcome: Outcome::Indexed,
            chunks: chunk(&document),
            document_title: document.title,
            indexed_at: Utc::now(),
        });
    }
    client.cancel().await.unwrap();
    entries
}

#[tokio::test]
async fn every_document_is_found_by_its_questions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("tests/handbook_questions.toml")).unwrap();
    let table: Questions = toml::from_str(&table).unwrap();
    let entries = entries(&root.join("data/handbook")).await;
    for entry in &entries {
        let uri = &*entry.resource.uri;
        assert!(table.documents.iter().any(|one| one.expect == uri), "nothing asks for {uri}");
    }
    let store = TantivyStore::in_memory().unwrap();
    store
        .apply(entries.into_iter().map(|entry| Change::Replace(Box::new(entry))).collect())
        .unwrap();
    store.commit().unwrap();

    let (mut asked, mut first, mut in_three) = (0, 0, 0);
    for expected in &table.documents {
        assert_eq!(expected.questions.len(), 3, "{}", expected.expect);
        for question in expected.questions.iter().chain([&expected.mixed]) {
            let answer = search(&store, &Request::new(question.as_str())).unwrap();
            let rank = answer.hits.iter().position(|hit| *hit.key.uri == *expected.expect);
            asked += 1;
            first += usize::from(rank == Some(0));
            in_three += usize::from(rank.is_some_and(|rank| rank < 3));
            if rank != Some(0) {
                let instead = answer.hits.first().map(|hit| hit.key.uri.to_string());
                println!("{question}\n  {} at {rank:?}, first {instead:?}", expected.expect);
            }
        }
    }
    let share = |count: usize| count as f64 / f64::from(asked);
    println!("{asked} questions: {first} first, {in_three} among the first three");
    assert!(share(first) >= FIRST, "first: {:.3}", share(first));
    assert!(share(in_three) >= IN_THREE, "among the first three: {:.3}", share(in_three));
}
