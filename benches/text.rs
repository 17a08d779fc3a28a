//! Text → chunks and HTML → text, in MB/s of input. Each line's denominator is the size it names.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use resdex::chunk::chunk;
use resdex::config::Limits;
use resdex::extract::{Extraction, extract};
use resdex::model::{Body, Content, Document, Resource, Snapshot};

const ENGLISH: &str = "Refunds are granted within thirty days of the purchase, provided that the goods are undamaged. ";
const CHINESE: &str = "退款申请须在购买后三十天内提交，商品应保持完好，运费由买家承担。";

fn snapshot(uri: &str, text: &str) -> (Resource, Snapshot) {
    let resource = Resource::new(uri);
    let content =
        Content { left_out: None, uri: uri.into(), mime_type: None, body: Body::Text(text.into()) };
    (resource, Snapshot::new(vec![content]))
}

fn document(uri: &str, text: &str) -> Document {
    let (resource, snapshot) = snapshot(uri, text);
    let limits = Limits { max_text_bytes: 64 << 20, ..Limits::default() };
    match extract(&resource, &snapshot, &limits) {
        Extraction::Document(document) => document,
        Extraction::Skipped(_) => Document::default(),
    }
}

/// `unit` again and again, up to about 2 MB.
fn megabytes(unit: &str) -> String {
    unit.repeat((2 << 20) / unit.len())
}

fn texts() -> Vec<(&'static str, &'static str, String)> {
    let section = format!("## Refunds\n\n{}\n\n- one item\n- another\n\n", ENGLISH.repeat(12));
    let wrapped = format!("{}\n", &ENGLISH[..72]).repeat(8) + "\n";
    vec![
        ("markdown", "x:///a.md", megabytes(&section)),
        ("markdown, tiny sections", "x:///a.md", megabytes("# h\n\ntext\n\n")),
        ("plain, wrapped lines", "x:///a.txt", megabytes(&wrapped)),
        ("plain, one line", "x:///a.txt", megabytes(ENGLISH)),
        ("plain, Chinese", "x:///a.txt", megabytes(&(CHINESE.repeat(10) + "\n\n"))),
        (
            "json, minified",
            "x:///a.json",
            format!("[{}1]", megabytes("{\"key\":\"value\",\"n\":12},")),
        ),
        ("base64", "x:///a.txt", megabytes("QmFzZTY0IGlzIG5vdCBsYW5ndWFnZSwgMTIzNDU2Nzg5MA")),
        ("log", "x:///a.log", megabytes("2026-01-12T08:30:00Z WARN pool: connection 17 closed\n")),
    ]
}

fn chunking(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("chunk");
    group.sample_size(10);
    for (name, uri, text) in texts() {
        let document = document(uri, &text);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| chunk(black_box(&document))));
    }
}

fn extracting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("extract");
    group.sample_size(10);
    let html = megabytes(&format!(
        "<h2 class=\"t\">Refunds</h2><p>{}</p><ul><li>one <b>item</b></li></ul><table><tr><th>a<th>b<tr><td>1<td>2</table>",
        ENGLISH.repeat(4)
    ));
    for (name, uri, text) in texts().into_iter().chain([("html", "x:///a.html", html)]) {
        let (resource, snapshot) = snapshot(uri, &text);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| extract(&resource, black_box(&snapshot), &Limits::default()));
        });
    }
}

criterion_group!(benches, chunking, extracting);
criterion_main!(benches);
