//! Words of a query in other forms than those of the text: endings, compounds, particles, spellings.

use super::{ask, check, highlighted, texts, uris};

#[test]
fn german_words_meet_in_endings_and_compounds() {
    let store = texts(&[
        "Mitarbeiterinnen und Mitarbeiter beantragen Urlaub im Personalportal.",
        "Häuser mit Fußbodenheizung brauchen eine niedrigere Vorlauftemperatur.",
        "Die Stromversorgung des Rechenzentrums ist doppelt ausgelegt.",
        "Das Passwort muss alle neunzig Tage geändert werden.",
        "Rechnungen gehen an die Buchhaltung.",
    ]);
    check(
        &store,
        &[
            // Of two words none tells the language, and the compound is nowhere.
            ("Urlaubsantrag stellen", 0),
            ("urlaubstage", 0),
            ("fussbodenheizungen in einem haus", 1),
            ("Haus", 1),
            ("Wie ist das Rechenzentrum versorgt?", 2),
            ("Passwortänderung", 3),
            ("passwörter", 3),
            ("Wohin mit der Rechnung?", 4),
            ("rechnungsadresse", 4),
        ],
    );
    // A near spelling isn't one of half the word.
    assert_eq!(uris(&ask(&store, "haus")), ["t:///1"]);
    assert_eq!(highlighted(&ask(&store, "Urlaubsantrag").hits[0]), "Urlaub");
}

#[test]
fn turkish_words_meet_in_their_endings() {
    let store = texts(&[
        "Kitaplarınızı on dört gün içinde iade edebilirsiniz.",
        "Şifrenizi ayarlar sayfasından yenileyebilirsiniz.",
        "İstanbul'daki müzeler pazartesi günleri kapalıdır.",
        "Çalışanlarımızın yıllık izni yirmi iş günüdür.",
        "Işıkları kapatmadan binadan ayrılmayınız.",
    ]);
    check(
        &store,
        &[
            ("iadesi", 0),
            ("Kitabın iadesi ne kadar sürede yapılmalı?", 0),
            ("kitapları", 0),
            ("Şifremi nasıl yenilerim?", 1),
            ("sifremi unuttum", 1),
            ("İSTANBUL MÜZESİ", 2),
            ("istanbul'un müzeleri", 2),
            ("çalışana izin verilir mi", 3),
            ("ışıklar", 4),
            ("isik", 4),
        ],
    );
}

#[test]
fn spanish_words_meet_in_their_endings() {
    let store = texts(&[
        "Los reembolsos se realizan en un plazo de catorce días hábiles.",
        "Los médicos recetan antibióticos contra infecciones bacterianas.",
        "La empresa fue fundada por dos hermanas españolas en Sevilla.",
        "Los niños menores de seis años viajan gratis.",
        "El pedido se envía en cuanto se recibe el pago.",
    ]);
    check(
        &store,
        &[
            ("reembolsar dinero", 0),
            ("¿En cuántos días me reembolsan?", 0),
            ("infección", 1),
            ("antibiotico", 1),
            ("¿Quién fundó la empresa?", 2),
            ("hermana española", 2),
            ("ninos gratis", 3),
            ("¿Puede viajar un niño?", 3),
            ("pedidos", 4),
            ("enviar un pedido", 4),
        ],
    );
}

#[test]
fn hindi_words_meet_in_their_endings_and_spellings() {
    let store = texts(&[
        "किताबें चौदह दिनों के भीतर वापस की जा सकती हैं।",
        "दफ़्तर में कर्मचारियों की छुट्टियाँ साल में बीस होती हैं।",
        "नदियों का पानी बाँध से शहरों तक पहुँचता है।",
        "हिंदी की परीक्षा का परिणाम सोमवार को घोषित होगा।",
        "क़ीमत में डिलीवरी शामिल है।",
    ]);
    check(
        &store,
        &[
            ("किताब", 0),
            ("किताबों की वापसी", 0),
            ("दफ्तर", 1),
            ("कर्मचारी को कितनी छुट्टी मिलती है?", 1),
            ("नदी", 2),
            ("शहर का पानी", 2),
            ("बांध", 2),
            ("हिन्दी परीक्षाएँ", 3),
            ("परिणामों", 3),
            ("कीमत", 4),
        ],
    );
}

#[test]
fn korean_words_meet_with_and_without_spaces() {
    let store = texts(&[
        "환불은 상품을 받은 날부터 십사 일 이내에 신청할 수 있습니다.",
        "도서관은 매주 월요일에 휴관하며 대출증은 안내대에서 만듭니다.",
        "비밀번호는 구십 일마다 바꾸어야 합니다.",
        "서버가 재시작되면 로그 파일이 새로 만들어집니다.",
        "직원의 연차 휴가는 일 년에 열다섯 날입니다.",
    ]);
    check(
        &store,
        &[
            ("환불신청", 0),
            ("환불을 신청하려면", 0),
            ("상품까지", 0),
            ("도서관에서", 1),
            ("도서관의 대출증으로", 1),
            ("비밀 번호", 2),
            ("비밀번호를 바꿔야 하나요?", 2),
            ("로그파일", 3),
            ("서버와 로그", 3),
            ("연차휴가", 4),
            ("직원에게도 휴가가 있나요?", 4),
        ],
    );
}
