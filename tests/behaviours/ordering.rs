//! What may order hits beside how well they answer, and who learns of whose copies.

use super::{ask, entry, resource, store, uris};
use globset::{Glob, GlobSetBuilder};
use resdex::model::{Resource, ServerName};
use resdex::search::filter::{Clause, Filter};
use resdex::search::{Request, search};

fn annotated(uri: &str, priority: f64, last_modified: &str) -> Resource {
    Resource {
        priority: Some(priority as f32),
        last_modified: Some(last_modified.into()),
        ..resource(uri)
    }
}

#[test]
fn annotations_never_drown_relevance() {
    // A clear answer, and a weaker one that its server praises as new and most important.
    for (better, weaker, query) in [
        (
            "The refund deadline is thirty days after delivery.",
            "Refund requests are handled by the billing team, without any hurry or rush.",
            "refund deadline",
        ),
        ("退款期限为收货后三十天。", "退款由财务部门处理，请联系财务。", "退款期限是多久"),
        ("返金の期限は三十日です。", "返金は経理部が担当します。", "返金の期限"),
        ("환불 기한은 삼십 일입니다.", "환불은 재무팀에서 처리합니다.", "환불 기한"),
        (
            "Срок возврата товара тридцать дней.",
            "Возврата ждут в бухгалтерии каждый день.",
            "срок возврата товара",
        ),
        ("ระยะเวลาคืนเงินคือสามสิบวัน", "คืนเงินโดยฝ่ายบัญชีของบริษัท", "ระยะเวลาคืนเงิน"),
        (
            "Thời hạn hoàn tiền là ba mươi ngày.",
            "Hoàn tiền do phòng kế toán lo.",
            "thời hạn hoàn tiền",
        ),
        ("مهلة الاسترداد ثلاثون يوما.", "الاسترداد من عمل قسم المحاسبة.", "مهلة الاسترداد"),
    ] {
        let store = store(vec![
            entry("s", annotated("x://better", 0.0, "2001-01-01T00:00:00Z"), better),
            entry("s", annotated("x://weaker", 1.0, "2026-11-30T00:00:00Z"), weaker),
            entry("s", annotated("x://other", 1.0, "2026-11-30T00:00:00Z"), "Parking 停车 駐車"),
        ]);
        let answer = ask(&store, query);
        assert_eq!(uris(&answer), ["x://better", "x://weaker"], "{query}");
        let [better, weaker] = &answer.hits[..] else { unreachable!() };
        assert!(better.score > weaker.score && better.relevance >= weaker.relevance, "{query}");
    }
}

#[test]
fn of_equal_hits_the_preferred_and_then_the_newer_comes_first() {
    for text in ["The refund deadline", "退款期限", "срок возврата", "ระยะเวลาคืนเงิน", "환불 기한"]
    {
        let texts: Vec<String> = ["α", "β", "γ", "δ"].map(|c| format!("{text} {c}")).into();
        let store = store(vec![
            entry("s", annotated("x://1", 0.2, "2026-01-01T00:00:00Z"), &texts[0]),
            entry("s", annotated("x://2", 0.9, "2020-01-01T00:00:00Z"), &texts[1]),
            entry("s", annotated("x://3", 0.2, "2026-06-01T00:00:00+02:00"), &texts[2]),
            entry("s", resource("x://4"), &texts[3]),
        ]);
        assert_eq!(uris(&ask(&store, text)), ["x://2", "x://3", "x://1", "x://4"], "{text}");
    }
}

fn clause(servers: &[&str], include: Option<&str>) -> Filter {
    let names = servers.iter().map(|name| ServerName::new(name).unwrap()).collect();
    let globs =
        include.map(|glob| GlobSetBuilder::new().add(Glob::new(glob).unwrap()).build().unwrap());
    Filter::default().and(Clause { servers: Some(names), include: globs, ..Clause::default() })
}

#[test]
fn a_copy_outside_the_callers_scope_is_not_named() {
    for text in
        ["The refund deadline is thirty days.", "退款期限为三十天。", "คืนสินค้าได้ภายในสามสิบวัน"]
    {
        let mut loved = resource("secret:///z");
        loved.priority = Some(1.0);
        let store = store(vec![
            entry("wiki", resource("wiki:///a"), text),
            entry("wiki", resource("wiki:///b"), text),
            entry("wiki", resource("wiki:///private/c"), text),
            entry("vault", loved, text),
        ]);
        let all = ask(&store, text);
        assert_eq!((uris(&all), all.hits[0].duplicates.len()), (vec!["secret:///z"], 3), "{text}");
        for (filter, first, others) in [
            (clause(&["wiki"], None), "wiki:///a", &["wiki:///b", "wiki:///private/c"][..]),
            (clause(&["wiki"], Some("wiki:///?")), "wiki:///a", &["wiki:///b"]),
            (clause(&["wiki"], Some("wiki:///b")), "wiki:///b", &[]),
            (clause(&["vault"], None), "secret:///z", &[]),
        ] {
            let request = Request { filter, ..Request::new(text) };
            let answer = search(&store, &request).unwrap();
            assert_eq!(uris(&answer), [first], "{text}");
            let named: Vec<&str> = answer.hits[0].duplicates.iter().map(|key| &*key.uri).collect();
            assert_eq!(named, others, "{text}");
        }
    }
}
