//! Words that carry a sentence and say nothing of its subject: articles, pronouns, question words.
//!
//! How rare a word is tells the same of them in a large index of one language. In a small one, or one of
//! many languages, they are as rare as any other, and a question would find whatever is worded like a
//! question. They aren't dropped: a query may consist of nothing else.
//!
//! A word that means something in another of these languages (`die`, `war`, `man`) isn't among them.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The words of a language, or of two that share many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Language {
    words: &'static str,
    /// Of languages in Latin letters, words that nearly every text has; see `language`.
    pub(super) everyday: &'static [&'static str],
    /// How its words change, as far as the stemmer of its script doesn't know.
    pub(super) forms: Forms,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    Known,
    /// Endings.
    Inflected,
    /// Endings, and words put together.
    Compound,
}

const fn language(
    words: &'static str,
    everyday: &'static [&'static str],
    forms: Forms,
) -> Language {
    Language { words, everyday, forms }
}

static LANGUAGES: [Language; 14] = [
    // English
    language(
        "a about after all also am an and any are as at be because been before being between both but by \
     can could did do does doing don't each few for from further had has have having he her here hers \
     him his how however i if in into is it its itself just me might more most much must my no nor \
     not of off on once only or other our ours out over own please same shall she should so some such \
     than that the their theirs them then there these they this those through to too under until up upon \
     very was we were what when where which while who whom whose why will with would you your yours \
     tell know want need go goes going get gets getting make made take hello hi thanks many kind kinds \
     sort sorts called call happen happens happened mean means meant example named",
        &["the", "of", "and"],
        Forms::Known,
    ),
    // German
    language(
        "aber als am an auch auf aus bei bin bis bitte da dass dein dem der des dich dir doch du durch ein eine \
     einem einen einer eines er es euch für haben habe hatte ich ihm ihn ihr ihre ihren ihrer im in ist ja \
     kann kannst können mein meine meinen meiner mich mir mit muss müssen nach nicht noch nur oder ohne \
     sehr sein seine seit sich sie sind soll sollte über um und uns unser unter vom von vor wann warum \
     was welche welchem welchen welcher welches wenn wer werden wie wieso wieviel wir wird wo woher wohin \
     wurde wurden zu zum zur zwischen",
        &["der", "und", "das"],
        Forms::Compound,
    ),
    // French
    language(
        "a au aux avec ce ces cette comment dans de des du elle elles en est et être eux il ils je la le les \
     leur leurs lui ma mais mes mon ne nos notre nous on ont ou où par pas pour pourquoi qu quand que quel \
     quelle quelles quels qui quoi sa sans se ses si sont sous sur ta te tes toi tu un une vos votre \
     vous combien était été peut doit fait",
        &["les", "des", "et"],
        Forms::Inflected,
    ),
    // Spanish and Portuguese
    language(
        "a al como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto cuánta cuántos cuántas de del desde \
     donde dónde e el ella ellos en entre es esa ese eso esta está están este esto estos fue fueron ha \
     hay hasta la las lo los más mi muy nuestro o para pero por porque puede puedo que qué quien quién \
     quiénes según ser sobre su sus también tiene un una unos y ya yo à ao aos às as com da das do \
     dos ela ele eles em essa esse está eu foi foram isso isto mais mas meu minha muito na nas não no nos \
     nossa nosso onde os ou pela pelo qual quais quando quanto quantos quantas que quem se sem seu sua são \
     também tem um uma você",
        &["que", "los", "para", "uma"],
        Forms::Inflected,
    ),
    // Italian and Dutch
    language(
        "a agli al alla alle anche che chi cosa cui da dal dalla degli dei del della delle dello di dove e \
     essere fu gli ha hanno i il in io la le lo loro ma nel nella nelle noi non per perché più quale quali \
     quando quanto quanti questa questo sono sua sul sulla tra tu un una uno voi aan als bij dat de deze \
     dit een en er geen haar heb heeft het hij hoe hoeveel ik is je kan maar met mijn naar niet nog of \
     om ons onze ook op te tot uit veel voor waar waarom wanneer wat welk welke wie wij worden wordt \
     zijn zich zij",
        &["che", "della", "het", "een"],
        Forms::Compound,
    ),
    // Turkish
    language(
        "acaba ama ancak bana bazı ben benim bir biz bu bunu çok da daha de değil diye en gibi hangi hangisi \
     hem için ile ise kaç kadar kim kimin mi mı mu mü nasıl ne neden nedir nerede nereden nereye niçin o \
     olan olarak oldu olduğu onu onun sen siz şu ve veya ya",
        &["ve", "bir", "bu"],
        Forms::Inflected,
    ),
    // Vietnamese
    language(
        "bao bằng bị bởi các cái cho chúng có của cũng đã đang đâu để đến điều được đó gì hay hoặc hơn \
     không khi là lại làm mà mấy một nào này nên nếu người nhiêu như những nhưng ở ra rằng sao sẽ tại \
     tất thế thì theo tôi trên trong từ và vào vậy về với vì",
        &["của", "và", "là"],
        Forms::Known,
    ),
    // Russian and Ukrainian
    language(
        "а без бы был была были было быть в вам вас вы где да для до его ее её ей если есть еще ещё же за и из \
     или им их к как какая какие каким какими каких какого какое какой каком какому какую когда который \
     которая которое которые которого которой которых которую кем кого ком кому кто куда ли мне могу мой \
     моя можно может мы на над нам нас не него нее неё ней нет ни них но о об он она они оно от откуда по \
     под почему при с сам свой своего своей своих свою себя сколько со так также там тем то того тоже той \
     только том тот ты у уже чего чей чем чему что чтобы эта эти это этого этой этом этот я й та і що як \
     це який яка яке які коли де чому від та із",
        &[],
        Forms::Known,
    ),
    // Arabic
    language(
        "في من على إلى عن ما ماذا متى أين كيف كم لماذا هل هو هي هم أن إن كان كانت الذي التي الذين هذا هذه ذلك \
     تلك أو ثم لا لم لن قد مع بين بعد قبل عند كل أي أية وما ومن هناك كما لقد منذ حتى هذان لدى به بها له لها \
     فيه فيها منه منها عليه عليها يتم تم",
        &[],
        Forms::Known,
    ),
    // Hindi
    language(
        "का की के को में से है हैं था थी थे और या एक यह वह ये वे इस उस क्या कौन कब कहाँ कहां कैसे क्यों कितना \
     कितने कितनी किस किसने किसे किसके जो पर ने भी नहीं हो होता होती होते कर करने करता करते करती किया गया \
     गई गए तक लिए साथ द्वारा मैं हम तुम आप अपने अपनी कोई कुछ जब तो ही",
        &[],
        Forms::Known,
    ),
    // Korean
    language(
        "무엇 무엇을 무엇이 무엇인가 무엇인가요 무엇입니까 뭐 뭐예요 누구 누가 누구인가 누구의 언제 언제인가 어디 \
     어디에 어디에서 어디서 어디인가 어떤 어떻게 어느 왜 몇 얼마 얼마나 얼마인가 그 이 저 것 것은 것이 것을 수 \
     있는 있나요 있습니까 하는 하나요 합니까 해야 되나요 됩니까 인가요 입니까 및 또는 그리고 대한 위한 위해 \
     제가 저는 나는 우리 이것 그것",
        &[],
        Forms::Known,
    ),
    // Chinese
    language(
        "的 了 吗 嗎 呢 吧 啊 是 不 在 和 与 與 或 及 也 都 就 还 還 又 很 被 把 给 給 对 對 从 從 向 到 由 为 為 以 于 於 \
     之 其 这 這 那 哪 哪个 哪個 哪些 哪里 哪裡 哪儿 哪年 哪一 哪一年 哪位 谁 誰 什么 什麼 甚麼 怎么 怎麼 怎样 怎樣 \
     如何 为什么 為什麼 为何 為何 何时 何時 何地 何处 何處 几 幾 多少 是否 有 我 你 您 他 她 它 们 們 我们 我們 你们 \
     你們 他们 他們 这个 這個 那个 那個 这些 這些 那些 一个 一個 可以 能 能够 能夠 会 會 要 请 請 请问 請問 因为 因為 \
     所以 但是 但 如果 而 并 並 并且 並且 等 什么样 怎么样 多久 多大",
        &[],
        Forms::Known,
    ),
    // Japanese
    language(
        "は が を に で と も の へ や か から まで より ので のに て た だ です ます ました ません でした する した して \
     され された される いる いた ある あった ない なる なった れる られ こと もの ため よう という として これ それ あれ \
     この その あの どの どれ どこ どう どうして どんな なぜ なに なん 何 何が 何を 何の 何と 何年 何人 誰 誰が いつ \
     いくつ いくら ください 教えて",
        &[],
        Forms::Known,
    ),
    // Thai
    language(
        "ที่ ของ และ ใน เป็น คือ มี ได้ ให้ ว่า จาก กับ โดย หรือ ไม่ ก็ จะ แต่ ถ้า เมื่อ อะไร ใคร ไหน ที่ไหน เมื่อไร เมื่อไหร่ \
     อย่างไร ยังไง ทำไม เท่าไร เท่าไหร่ กี่ ใด บ้าง ไหม มั้ย นี้ นั้น ซึ่ง การ ความ ถึง ต้อง แล้ว อยู่ คะ ครับ ค่ะ ฉัน ผม",
        &[],
        Forms::Known,
    ),
];

/// Lower case, as they're written and, for those who type without them, without diacritics.
static SET: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = LANGUAGES.iter().flat_map(|language| language.words.split_whitespace());
    words.flat_map(|word| [word.to_owned(), bare(word)]).collect()
});

/// The languages in Latin letters that have a word, by their place.
static LATIN: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| {
    let mut languages: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, language) in LANGUAGES.iter().enumerate() {
        if language.everyday.is_empty() {
            continue;
        }
        for word in language.words.split_whitespace().flat_map(|word| [word.to_owned(), bare(word)])
        {
            let known = languages.entry(word).or_default();
            if !known.contains(&place) {
                known.push(place);
            }
        }
    }
    languages
});

/// Whether a word, in lower case, says nothing of a sentence's subject.
pub fn is_common(word: &str) -> bool {
    SET.contains(word)
}

/// The language in Latin letters of which a text has the most common words; of several that have equally
/// many, all. Nothing for a text without common words.
pub(super) fn languages_of(text: &str) -> Vec<&'static Language> {
    let mut counts = [0_usize; LANGUAGES.len()];
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        for language in LATIN.get(word.to_lowercase().as_str()).into_iter().flatten() {
            if let Some(count) = counts.get_mut(*language) {
                *count += 1;
            }
        }
    }
    let most = counts.iter().copied().max().unwrap_or_default();
    let likely = LANGUAGES.iter().zip(counts).filter(|(_, count)| most > 0 && *count == most);
    likely.map(|(language, _)| language).collect()
}

/// A word without the marks of the scripts in which people leave them out.
fn bare(word: &str) -> String {
    if !word.chars().all(|c| (c as u32) < 0x0250 || (0x1E00..0x1F00).contains(&(c as u32))) {
        return word.to_owned();
    }
    let letters = word.nfd().filter(|c| !is_combining_mark(*c));
    letters.map(|c| if c == 'đ' { 'd' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_known_in_every_script() {
        for word in [
            "what",
            "welcher",
            "où",
            "quién",
            "không",
            "khong",
            "duoc",
            "который",
            "ما",
            "कौन",
            "什么",
            "誰",
            "どこ",
            "อะไร",
            "어디에",
        ] {
            assert!(is_common(word), "{word}");
        }
        for word in ["refund", "die", "war", "man", "возврат", "退款", "환불", "返品", "คืนเงิน", ""]
        {
            assert!(!is_common(word), "{word}");
        }
    }
}
