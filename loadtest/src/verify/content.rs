//! What posts say: a text, and besides whatever else a post can have. All of that follows from the text, so a post that
//! shows parts of one revision with the text of another one is seen.

use tideline::post::{Content, Draft, Edit};

use super::world::PostNo;

/// How much comes with a text; its beginning tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Whatever a post can have.
    #[default]
    Whole,
    /// What clients of HTTP can say, too: a warning and a language. Hashtags stand in the text.
    Sayable,
    /// Nothing: an older build writes none of it.
    Bare,
}

impl Extent {
    fn beginning(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Sayable => "said ",
            Self::Bare => "bare ",
        }
    }

    pub(crate) fn of(text: &str) -> Self {
        let all = [Self::Sayable, Self::Bare];
        all.into_iter().find(|extent| text.starts_with(extent.beginning())).unwrap_or_default()
    }
}

/// A post's text after so many edits, with these hashtags.
pub(crate) fn text_of(no: PostNo, edits: usize, extent: Extent, tags: &[u8]) -> String {
    let tags = tags.iter().filter(|_| extent == Extent::Sayable).map(|tag| format!(" #{}", tag_of(*tag)));
    format!("{}post {no}, edit {edits}{}", extent.beginning(), tags.collect::<String>())
}

/// A hashtag by its number. It is written in many ways.
pub(super) fn tag_of(number: u8) -> String {
    format!("Tide{number}")
}

/// What comes with a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    warning: Option<String>,
    language: Option<String>,
    attachments: Vec<u8>,
    location: Vec<u8>,
    fields: Vec<(String, Vec<u8>)>,
}

impl Parts {
    /// A plain repost has no text, and nothing with it.
    fn of(text: &str) -> Self {
        let extent = Extent::of(text);
        if text.is_empty() || extent == Extent::Bare {
            return Self::default();
        }
        let sum: usize = text.bytes().map(usize::from).sum();
        if extent == Extent::Sayable {
            return Self {
                warning: sum.is_multiple_of(3).then(|| format!("of {text}")),
                // Over HTTP none can be taken away again.
                language: Some(["de", "en"][sum % 2].to_owned()),
                ..Self::default()
            };
        }
        let bytes = |is_there: bool| if is_there { text.as_bytes().to_vec() } else { Vec::new() };
        Self {
            warning: sum.is_multiple_of(3).then(|| format!("of {text}")),
            language: ["de", "en"].get(sum % 4).map(ToString::to_string),
            attachments: bytes(sum.is_multiple_of(2)),
            location: bytes(sum.is_multiple_of(5)),
            fields: if sum % 3 == 1 { vec![("of".into(), text.into())] } else { Vec::new() },
        }
    }
}

pub(super) fn draft(text: String) -> Draft {
    let Parts { warning, language, attachments, location, fields } = Parts::of(&text);
    let content =
        Content { content_warning: warning, attachments, location, fields, ..Draft::text(text).content };
    Draft { content, language, ..Draft::default() }
}

pub(super) fn edit(text: String) -> Edit {
    let Parts { warning, language, attachments, location, fields } = Parts::of(&text);
    Edit {
        text: Some(text),
        content_warning: Some(warning),
        language: Some(language),
        attachments: Some(attachments),
        location: Some(location),
        fields: Some(fields),
        ..Edit::default()
    }
}

/// The text that a post shows: no post's, if what comes with it belongs to another one.
pub(super) fn text_shown(content: &Content, language: Option<&str>) -> String {
    let shown = Parts {
        warning: content.content_warning.clone(),
        language: language.map(Into::into),
        attachments: content.attachments.clone(),
        location: content.location.clone(),
        fields: content.fields.clone(),
    };
    match shown == Parts::of(&content.text) {
        true => content.text.clone(),
        false => format!("{} with what isn't its own: {shown:?}", content.text),
    }
}

/// What a post over HTTP says beside its text.
pub(super) struct SayableParts {
    pub(super) warning: Option<String>,
    pub(super) language: Option<String>,
}

/// What comes with a text, if HTTP can say all of it.
pub(super) fn sayable_over_http(text: &str) -> Option<SayableParts> {
    let Parts { warning, language, attachments, location, fields } = Parts::of(text);
    let is_all = attachments.is_empty() && location.is_empty() && fields.is_empty();
    is_all.then_some(SayableParts { warning, language })
}

/// The text that a status shows: no post's, if what shows with it belongs to another one. Texts hold nothing that is
/// spelled otherwise in HTML, but hashtags, which are links.
pub(super) fn shown_over_http(html: &str, warning: &str, language: Option<&str>) -> String {
    let inner = html.strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>")).unwrap_or(html);
    let mut pieces = inner.split('<');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| text.push_str(piece.split_once('>').map_or(piece, |(_, behind)| behind)));
    let wanted = Parts::of(&text);
    match (wanted.warning.as_deref().unwrap_or_default(), wanted.language.as_deref()) == (warning, language) {
        true => text,
        false => format!("{html} with what isn't its own: {warning:?}, {language:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_another_text_is_seen() {
        let texts: Vec<String> = (0..20).map(|no| text_of(no, 0, Extent::Whole, &[])).collect();
        let drafts: Vec<Draft> = texts.iter().map(|text| draft(text.clone())).collect();
        for (text, draft) in texts.iter().zip(&drafts) {
            assert_eq!(text_shown(&draft.content, draft.language.as_deref()), *text);
        }
        let has = [
            drafts.iter().any(|draft| draft.language.is_some()),
            drafts.iter().any(|draft| draft.content.content_warning.is_some()),
            drafts.iter().any(|draft| !draft.content.attachments.is_empty()),
            drafts.iter().any(|draft| !draft.content.location.is_empty()),
            drafts.iter().any(|draft| !draft.content.fields.is_empty()),
        ];
        assert_eq!(has, [true; 5]);
        let mixed = Content { text: texts[1].clone(), ..drafts[0].content.clone() };
        assert_ne!(text_shown(&mixed, drafts[0].language.as_deref()), texts[1]);
        let shown = |text: &str, warning: &str, language: Option<&str>| {
            shown_over_http(&format!("<p>{text}</p>"), warning, language)
        };
        for text in &texts {
            let Parts { warning, language, .. } = Parts::of(text);
            assert_eq!(shown(text, warning.as_deref().unwrap_or_default(), language.as_deref()), *text);
            assert_ne!(shown(text, "another's", language.as_deref()), *text);
        }
        assert!(texts.iter().any(|text| sayable_over_http(text).is_some()));
        // An older build's, and a plain repost.
        for text in [text_of(7, 0, Extent::Bare, &[3]), String::new()] {
            assert_eq!(draft(text.clone()), Draft::text(text));
        }
        let said = text_of(7, 0, Extent::Sayable, &[3]);
        assert_eq!((said.as_str(), Extent::of(&said)), ("said post 7, edit 0 #Tide3", Extent::Sayable));
        let parts = sayable_over_http(&said).unwrap();
        let html = "<p>said post 7, edit 0 <a href=\"/tags/tide3\">#<span>Tide3</span></a></p>";
        let warning = parts.warning.unwrap_or_default();
        assert_eq!(shown_over_http(html, &warning, parts.language.as_deref()), said);
    }
}
