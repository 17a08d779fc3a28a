//! Queries of every kind and length, and what of a passage they show.

use std::time::{Duration, Instant};

use super::{ask, check, entry, highlighted, resource, store, texts, uris};
use resdex::search::query::Bounds;
use resdex::search::{Request, search};

#[test]
fn queries_of_nothing_but_common_words_are_answered() {
    let store = texts(&[
        "To be, or not to be: that is the question.",
        "你是谁？这是什么？",
        "Кто там? Это что?",
        "من هو هذا؟ ماذا كان؟",
        "ทำไมต้องเป็นอย่างไร",
        "これは何ですか",
        "Ai là ai và cái gì đây",
        "Wer bin ich, und wie bin ich hier?",
        "Quien es el que esta aqui",
        "이것은 무엇인가요",
        "यह क्या है",
        "Refunds take thirty days.",
        "退款期限为三十天",
        "Возврат товара занимает тридцать дней",
    ]);
    check(
        &store,
        &[
            ("to be or not to be", 0),
            ("the that is", 0),
            ("你是谁", 1),
            ("這是什麼", 1),
            ("это что", 2),
            ("кто там?", 2),
            ("من هو", 3),
            ("ماذا كان هذا؟", 3),
            ("ทำไม", 4),
            ("เป็นอย่างไร", 4),
            ("これは何ですか", 5),
            ("何", 5),
            ("là gì", 6),
            ("cái gì và ai", 6),
            ("wer bin ich", 7),
            ("wie bin ich hier", 7),
            ("quien es", 8),
            ("무엇인가요", 9),
            ("क्या है", 10),
        ],
    );
}

#[test]
fn a_quoted_phrase_finds_its_words_in_their_order_only() {
    let store = texts(&[
        // The phrase, and the same words apart or in another order.
        "返金の期限は三十日です。",
        "期限が過ぎた返金は別に相談する。",
        "환불 기한은 삼십 일입니다.",
        "기한이 지난 환불은 따로 문의하세요.",
        "กำหนดคืนเงินภายในสามสิบวัน",
        "คืนสินค้าแล้วจะได้รับเงินตามกำหนด",
        "退款期限为三十天。",
        "期限未到，可以退款。",
        "退貨運費由買家承擔。",
        "運費由買家承擔，退貨除外。",
        "Срок возврата товара.",
        "Возврата нет, срок прошёл.",
        "thời hạn hoàn tiền",
        "hoàn thành đúng thời hạn, có tiền",
        "वापसी की अवधि",
        "अवधि के बाद वापसी",
    ]);
    for (query, expected) in [
        ("\"返金の期限\"", 0),
        ("「返金の期限」", 0),
        ("『返金の期限』は", 0),
        ("\"환불 기한\"", 2),
        ("“환불 기한”", 2),
        ("\"คืนเงิน\"", 4),
        ("「คืนเงินภายใน」", 4),
        ("\"退款期限\"", 6),
        ("“退款期限”是多久", 6),
        ("「退貨運費」", 8),
        ("\"退货运费\"", 8),
        ("\"срок возврата\"", 10),
        ("\"hoàn tiền\"", 12),
        ("\"वापसी की अवधि\"", 14),
    ] {
        let answer = ask(&store, query);
        assert_eq!(uris(&answer), [format!("t:///{expected}")], "{query}");
        assert!(!highlighted(&answer.hits[0]).is_empty(), "{query}");
    }
}

/// As long as people paste.
#[test]
fn a_very_long_query_is_answered_in_time() {
    let right = [
        "The refund deadline is thirty days after delivery.",
        "退款期限为收货后三十天。",
        "Срок возврата товара тридцать дней.",
        "ระยะเวลาคืนเงินคือสามสิบวัน",
    ];
    let noise =
        (0..400).map(|n| format!("Minutes of meeting {n}: lunch, parking, lamps. 会议记录"));
    let texts: Vec<String> = right.map(str::to_owned).into_iter().chain(noise).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let store = super::texts(&texts);
    let unbounded = Bounds { bytes: 1 << 20, terms: 10_000 };
    for (words, number) in [
        ("refund deadline thirty days delivery ", 0),
        ("退款期限 收货 三十天 ", 1),
        ("срок возврата товара тридцать дней ", 2),
        ("ระยะเวลาคืนเงิน สามสิบวัน ", 3),
    ] {
        let long: String =
            (0..2_000).map(|n| format!("{words}word{n} ")).collect::<String>().trim().to_owned();
        assert!(long.split(' ').count() >= 6_000);
        // Without bounds, as an owner may configure it, one script shows as much as four.
        let all = [Bounds::default(), unbounded];
        for bounds in all.into_iter().take(if number == 1 { 2 } else { 1 }) {
            let begun = Instant::now();
            let request = Request { bounds, ..Request::new(long.as_str()) };
            let answer = search(&store, &request).unwrap();
            assert_eq!(uris(&answer)[0], format!("t:///{number}"), "{words}");
            assert!(begun.elapsed() < Duration::from_secs(30), "{words}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn signs_and_single_characters_are_words() {
    let store = texts(&[
        "Ship it 🚀 on Friday.",
        "部署完成 🎉 大家辛苦了",
        "Спасибо ❤️ за помощь",
        "The flag of Japan is 🇯🇵",
        "Well done 👍🏽 team",
        "水は百度で沸く",
        "犬を飼う",
        "他用C++写的",
        "C#で書かれた",
        "Работает на .NET",
        "เขียนด้วย C",
        "Node.js và TypeScript",
        "使用 F# 编写",
    ]);
    check(
        &store,
        &[
            ("🚀", 0),
            ("🚀 friday", 0),
            ("🎉", 1),
            ("部署 🎉", 1),
            ("❤️", 2),
            ("❤", 2),
            ("🇯🇵", 3),
            ("👍🏽", 4),
            ("👍", 4),
            ("水", 5),
            ("犬", 6),
            ("他", 7),
            ("c++", 7),
            ("什么是C++", 7),
            ("C#", 8),
            ("c# とは", 8),
            (".net", 9),
            ("что такое .NET", 9),
            ("C", 10),
            ("node.js", 11),
            ("f#", 12),
        ],
    );
}

#[test]
fn kana_are_read_in_every_form() {
    let store = texts(&[
        "コンピューターの設定",
        "らーめんを食べる",
        "ﾌﾟﾘﾝﾀｰが動かない",
        "ウイスキーの製法",
        "ヴァイオリンの弾き方",
        "ギターを弾く",
        "㍍で測る",
    ]);
    check(
        &store,
        &[
            ("こんぴゅーたー", 0),
            ("ｺﾝﾋﾟｭｰﾀｰ", 0),
            ("コンピュータ", 0),
            ("ラーメン", 1),
            ("ﾗｰﾒﾝ", 1),
            ("プリンター", 2),
            ("ぷりんたー", 2),
            ("プリンタ", 2),
            ("ういすきー", 3),
            ("ﾊﾞｲｵﾘﾝ ヴァイオリン", 4),
            ("ｷﾞﾀｰ", 5),
            ("ぎたー", 5),
            ("メートル", 6),
        ],
    );
}

#[test]
fn both_chinese_scripts_find_each_other() {
    let traditional = texts(&["軟體開發與測試", "憂鬱的臺灣烏龜", "後臺頭髮發展", "線上購物須知"]);
    check(
        &traditional,
        &[("软体开发", 0), ("忧郁的台湾乌龟", 1), ("头发", 2), ("线上购物", 3), ("測試", 0)],
    );
    let simplified = texts(&["软件开发与测试", "忧郁的台湾乌龟", "后台头发发展", "网上购物须知"]);
    check(
        &simplified,
        &[("開發與測試", 0), ("憂鬱的臺灣烏龜", 1), ("頭髮", 2), ("網上購物", 3), ("测试", 0)],
    );
    for (store, query) in [(&traditional, "「头发」"), (&simplified, "「頭髮」")] {
        assert_eq!(uris(&ask(store, query)), ["t:///2"], "{query}");
    }
}

#[test]
fn korean_particles_and_endings_make_no_difference() {
    let store = texts(&[
        "서버를 설정하려면 관리자에게 문의하세요.",
        "데이터베이스에서 백업을 복원합니다.",
        "휴가는 팀장이 승인한다.",
        "회의실 예약은 포털에서 합니다.",
    ]);
    check(
        &store,
        &[
            ("서버", 0),
            ("서버는 어떻게 설정하나요", 0),
            ("서버의 설정", 0),
            ("관리자", 0),
            ("데이터베이스", 1),
            ("데이터베이스를 복원", 1),
            ("백업은", 1),
            ("휴가를 누가 승인하나요?", 2),
            ("팀장", 2),
            ("회의실을 예약하고 싶어요", 3),
            ("포털", 3),
        ],
    );
}

#[test]
fn snippets_keep_sentences_and_words_whole() {
    let thai = [
        "พนักงานทุกคนมีสิทธิ์ลาพักร้อนปีละสิบห้าวัน",
        "การขอลาต้องแจ้งหัวหน้างานล่วงหน้าอย่างน้อยเจ็ดวัน",
        "ระยะเวลาคืนเงินคือสามสิบวันหลังจากได้รับสินค้า",
        "ลูกค้าต้องเก็บใบเสร็จรับเงินไว้เป็นหลักฐานทุกครั้ง",
        "ค่าจัดส่งสินค้าคืนทางบริษัทเป็นผู้รับผิดชอบทั้งหมด",
        "หากมีข้อสงสัยกรุณาติดต่อฝ่ายบริการลูกค้าในเวลาทำการ",
    ];
    let chinese = [
        "员工每年享有十五天带薪年假。",
        "请假须提前七天通知主管。",
        "退款期限为收货后三十天。",
        "顾客须保留发票作为凭证。",
        "退货的运费全部由公司承担。",
        "如有疑问，请在工作时间联系客服。",
    ];
    // Thai ends sentences with a space; Chinese with a sign.
    for (pieces, between, query) in [(thai, " ", "ระยะเวลาคืนเงิน"), (chinese, "", "退款期限")]
    {
        let text = [pieces; 4].concat().join(between);
        let store = texts(&[&text]);
        let answer = ask(&store, query);
        let snippet = &answer.hits[0].passages[0].snippet;
        let shown = snippet.trim_matches('…').trim();
        assert!(snippet.contains(pieces[2]), "{snippet}");
        // Every end lies between two pieces.
        let starts = pieces.iter().any(|piece| shown.starts_with(piece));
        let ends = pieces.iter().any(|piece| shown.ends_with(piece));
        assert!(starts && ends, "{snippet}");
    }
}

#[test]
fn a_sentence_without_spaces_is_cut_between_words() {
    use icu_segmenter::{WordSegmenter, options::WordBreakInvariantOptions};
    let sentence = "ระยะเวลาคืนเงินคือสามสิบวันหลังจากได้รับสินค้าและลูกค้าต้องเก็บใบเสร็จรับเงินไว้เป็นหลักฐาน";
    let filler = "พนักงานทุกคนมีสิทธิ์ลาพักร้อนและต้องแจ้งหัวหน้างานล่วงหน้าอย่างน้อยเจ็ดวันทำการ";
    let text = format!("{}{sentence}{}", filler.repeat(8), filler.repeat(8));
    let store = texts(&[&text]);
    let answer = ask(&store, "ระยะเวลาคืนเงิน");
    let passage = &answer.hits[0].passages[0];
    let breaks: Vec<usize> = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default())
        .segment_str(&text)
        .collect();
    let snippet = passage.snippet.trim_matches('…');
    let at = text.find(snippet).unwrap();
    for end in [at, at + snippet.len()] {
        assert!(breaks.contains(&end), "cut within a word: {snippet}");
    }
}

#[test]
fn a_hits_heading_path_is_that_of_its_passage() {
    let filler =
        "Another paragraph that says nothing of it at all, only to fill the chunk. ".repeat(30);
    let document = format!(
        "# Handbook\n\n{filler}\n\n## Refunds\n\n{filler}\n\n### Abroad\n\nCustoms forms are kept. {filler}\n\n\
         ## 休假\n\n{filler}\n\n### 年假\n\n员工每年享有十五天年假。{filler}\n\n\
         ## Доставка\n\nКурьер приезжает утром. {filler}\n"
    );
    let mut page = resource("h:///1.md");
    page.mime_type = Some("text/markdown".into());
    let store = store(vec![entry("s", page, &document)]);
    for (query, path) in [
        ("customs forms", &["Handbook", "Refunds", "Abroad"][..]),
        ("每年十五天", &["Handbook", "休假", "年假"]),
        ("курьер утром", &["Handbook", "Доставка"]),
        ("年假", &["Handbook", "休假", "年假"]),
    ] {
        let answer = ask(&store, query);
        let passage = &answer.hits[0].passages[0];
        assert_eq!(passage.chunk.heading_path, path, "{query}: {}", passage.snippet);
        let line = document.lines().nth(passage.lines.0 as usize - 1).unwrap();
        let shown = passage.snippet.trim_start_matches('…').trim_start();
        let first = shown.lines().next().unwrap().trim_end_matches('…');
        assert!(line.contains(first), "{query}: line {} is {line:.80}", passage.lines.0);
    }
}

#[test]
fn the_last_word_may_be_unfinished() {
    let store = texts(&[
        "The configuration lives in a file.",
        "Configured printers answer at once.",
        "Конфигурация хранится в файле.",
        "Die Einstellungen liegen in einer Datei.",
        "Call getUserName before you go.",
        "الإعدادات محفوظة في ملف",
        "सेटिंग्स फ़ाइल में हैं",
        "Nothing else is confirmed here.",
    ]);
    check(
        &store,
        &[
            ("file conf", 0),
            ("the configurat", 0),
            ("where does the configuratio", 0),
            ("once prin", 1),
            ("файл конфиг", 2),
            ("конфигурац", 2),
            ("Einstell", 3),
            ("getUser", 4),
            ("call getuserna", 4),
            ("الإعد", 5),
            ("सेटि", 6),
            ("confir", 7),
        ],
    );
    // What goes on in several ways finds them all, and says which word of the text it took.
    let answer = ask(&store, "con");
    let mut found = uris(&answer);
    found.sort_unstable();
    assert_eq!(found, ["t:///0", "t:///1", "t:///7"]);
    assert!(highlighted(&ask(&store, "confi").hits[0]).to_lowercase().starts_with("confi"));
    // Only the last word, only one that occurs nowhere, and none that a sign ends.
    for (query, expected) in [("pri nothing", 1), ("file", 1), ("pri", 1), ("pri?", 0)] {
        let found = ask(&store, query);
        assert_eq!(found.hits.len(), expected, "{query}: {:?}", uris(&found));
    }
    // What the caller can't see doesn't complete anything.
    assert!(ask(&store, "pri uri:t:///5").hits.is_empty());
}
