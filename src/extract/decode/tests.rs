use super::*;

#[test]
fn base64_is_decoded_leniently_or_refused() {
    let rows: &[(&str, Result<&[u8], &str>)] = &[
        ("aGVsbG8gd29ybGQ=", Ok(b"hello world")),
        ("aGVsbG8gd29ybGQ", Ok(b"hello world")),
        ("aGVs\r\nbG8g\n  d29y\n\tbGQ=\n", Ok(b"hello world")),
        ("  aGVsbG8gd29ybGQ=  ", Ok(b"hello world")),
        ("data:text/plain;base64,aGVsbG8gd29ybGQ=", Ok(b"hello world")),
        ("++//", Ok(&[0xfb, 0xef, 0xff])),
        ("--__", Ok(&[0xfb, 0xef, 0xff])),
        ("", Ok(b"")),
        ("+-/_", Err("mixes")),
        ("hello, this is no base64", Err("spaces")),
        ("hello!", Err("'!' at position 5")),
        ("退款", Err("'退' at position 0")),
        ("aGVsbG8gd29ybGR=", Err("stray bits")),
        ("aGVsb", Err("cut off")),
        ("a=Vs", Err("position 1")),
    ];
    for (blob, expected) in rows {
        match (base64(blob), expected) {
            (Ok(bytes), Ok(expected)) => assert_eq!(bytes, *expected, "{blob}"),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{blob}: {reason}"),
            (got, _) => panic!("{blob}: {got:?}"),
        }
    }
}

const CHINESE: &str =
    "退款申请须在购买后三十天内提交，商品应保持完好，运费由买家承担。如有疑问请联系客服中心。";
const TRADITIONAL: &str = "退款申請須於購買後三十日內提出，商品必須保持完好，運費由顧客自行負擔。";
const JAPANESE: &str = "返金は購入から三十日以内に申請してください。商品は未使用に限ります。";
const KOREAN: &str =
    "환불은 구매일로부터 삼십 일 이내에 요청할 수 있으며 상품은 손상되지 않아야 합니다.";
const RUSSIAN: &str =
    "Возврат возможен в течение тридцати дней после покупки, если товар не повреждён.";
const FRENCH: &str = "Le remboursement est accordé dans les trente jours après l’achat, à condition que l’article soit intact.";
const THAI: &str = "สามารถขอคืนเงินได้ภายในสามสิบวันหลังจากวันที่ซื้อ โดยสินค้าต้องไม่เสียหาย";
const ARABIC: &str = "يمكن طلب استرداد الأموال خلال ثلاثين يوما من تاريخ الشراء إذا كانت السلعة سليمة";
const HINDI: &str = "धनवापसी का अनुरोध खरीद के तीस दिनों के भीतर किया जा सकता है।";

/// What a server with that charset would have sent.
fn encoded(label: &str, text: &str) -> Vec<u8> {
    match label {
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => {
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, _, unmappable) = encoding.encode(text);
            assert!(!unmappable, "{label}: {text}");
            bytes.into_owned()
        }
    }
}

#[test]
fn charsets_are_decoded_declared_or_not() {
    let rows: &[(&str, &str)] = &[
        ("utf-8", CHINESE),
        ("utf-8", HINDI),
        ("gb18030", CHINESE),
        ("gbk", CHINESE),
        ("big5", TRADITIONAL),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("iso-2022-jp", JAPANESE),
        ("euc-kr", KOREAN),
        ("windows-1251", RUSSIAN),
        ("koi8-r", RUSSIAN),
        ("windows-1252", FRENCH),
        ("windows-874", THAI),
        ("windows-1256", ARABIC),
        ("utf-16le", CHINESE),
        ("utf-16be", CHINESE),
        ("utf-16le", FRENCH),
        ("utf-16be", FRENCH),
        ("utf-16le", RUSSIAN),
        ("utf-16be", KOREAN),
        ("utf-16le", HINDI),
    ];
    for (label, expected) in rows {
        let bytes = encoded(label, expected);
        for declared in [None, Some(*label)] {
            let decoded = text(bytes.clone(), declared);
            assert_eq!(
                decoded.as_ref().map(|d| d.text.as_str()),
                Some(*expected),
                "{label}, declared {declared:?}, taken for {:?}",
                decoded.as_ref().map(|d| d.charset)
            );
            assert!(!decoded.unwrap().corrected, "{label} {declared:?}");
        }
    }
}

#[test]
fn byte_order_marks_go_before_everything() {
    let mut rows: Vec<(Vec<u8>, &str)> = vec![];
    for (label, mark) in
        [("utf-8", &b"\xef\xbb\xbf"[..]), ("utf-16le", b"\xff\xfe"), ("utf-16be", b"\xfe\xff")]
    {
        rows.push(([mark, &encoded(label, CHINESE)].concat(), CHINESE));
        rows.push(([mark, &encoded(label, "short")].concat(), "short"));
    }
    for (bytes, expected) in rows {
        for declared in [None, Some("windows-1252")] {
            assert_eq!(text(bytes.clone(), declared).unwrap().text, expected);
        }
    }
}

#[test]
fn a_wrong_charset_is_corrected() {
    let rows: &[(&str, &str, &str)] = &[
        ("utf-8", "iso-8859-1", RUSSIAN),
        ("utf-8", "us-ascii", CHINESE),
        ("gbk", "utf-8", CHINESE),
        ("windows-1251", "utf-8", RUSSIAN),
        ("utf-8", "gb2312", CHINESE),
        ("utf-8", "utf-16", CHINESE),
        ("utf-8", "utf-16le", "plain ASCII words"),
        ("utf-16le", "utf-8", CHINESE),
        ("utf-16be", "utf-16le", RUSSIAN),
        ("utf-8", "no-such-charset", CHINESE),
    ];
    for (real, declared, expected) in rows {
        let decoded = text(encoded(real, expected), Some(declared)).unwrap();
        assert_eq!(decoded.text, *expected, "{real} declared {declared}");
    }
}

#[test]
fn binary_is_no_text() {
    let noise: Vec<u8> =
        (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let rows: &[&[u8]] = &[&noise, b"\x00\x01\x02\x03\xff\xfe\xfd", &[0; 64], &[0xff; 3]];
    for bytes in rows {
        let decoded = text(bytes.to_vec(), None);
        assert!(
            decoded.as_ref().is_none_or(|d| d.text.chars().all(|c| !c.is_control())),
            "{decoded:?}"
        );
    }
    assert_eq!(text(noise, None), None);
    assert_eq!(text(vec![0; 64], None), None);
}

#[test]
fn a_few_broken_bytes_in_utf8_are_forgiven() {
    let mut bytes = CHINESE.repeat(50).into_bytes();
    bytes.truncate(bytes.len() - 1);
    let decoded = text(bytes, Some("utf-8")).unwrap();
    assert!(decoded.text.starts_with("退款申请"), "{}", decoded.charset);
    assert_eq!(decoded.charset, "UTF-8");
}
