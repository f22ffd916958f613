//! Type names as the source says them: `const struct stats *`, `std::atomic<long>`, `[u64; 8]`, `[]uint8`.

use super::{DEEPEST, Shape};
use crate::{
    dwarf::{Die, Entry, View},
    language::Language,
};

/// Entries read for one name. Parameters of function pointers may be function pointers.
const MOST_STEPS: usize = 256;
/// Longest name that is built.
const LONGEST: usize = 1 << 14;

impl View<'_> {
    /// The name of a type. `None` is `void`.
    pub(crate) fn type_name(&self, die: Option<Die>) -> String {
        let mut writer = TypeWriter {
            view: self,
            steps: 0,
        };
        writer.declare(die, String::new(), 0)
    }
}

struct TypeWriter<'v, 'a> {
    view: &'v View<'a>,
    steps: usize,
}

impl<'a> TypeWriter<'_, 'a> {
    /// The C declaration of `inner` with this type, from the inside to the outside, as C declares.
    fn declare(&mut self, die: Option<Die>, inner: String, depth: usize) -> String {
        self.steps += 1;
        let Some(die) = die else {
            return join("void", &inner);
        };
        if depth > DEEPEST || self.steps > MOST_STEPS || inner.len() > LONGEST {
            return join("?", &inner);
        }
        let Ok(entry) = self.view.entry(die) else {
            return join("?", &inner);
        };
        let language = self.view.language_of(die);
        let next = depth + 1;
        match entry.tag {
            // Go names all its types as its source does: `[]uint8`, `map[string]*main.node`.
            _ if language == Some(Language::Go) && entry.name.is_some() => {
                join(&own_name(&entry), &inner)
            }
            // Rust names its pointers: `*mut T`, `&str`.
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
                if language == Some(Language::Rust) && entry.name.is_some() =>
            {
                join(&own_name(&entry), &inner)
            }
            gimli::DW_TAG_pointer_type => self.point("*", &entry, &inner, next),
            gimli::DW_TAG_reference_type => self.point("&", &entry, &inner, next),
            gimli::DW_TAG_rvalue_reference_type => self.point("&&", &entry, &inner, next),
            gimli::DW_TAG_const_type => self.qualify("const", &entry, inner, next),
            gimli::DW_TAG_volatile_type => self.qualify("volatile", &entry, inner, next),
            gimli::DW_TAG_restrict_type => self.qualify("restrict", &entry, inner, next),
            gimli::DW_TAG_atomic_type => self.qualify("_Atomic", &entry, inner, next),
            gimli::DW_TAG_array_type => self.array(die, &entry, &inner, next),
            gimli::DW_TAG_subroutine_type => {
                let mut parameters = Vec::new();
                // The function's own result comes last: it is what is outside of the declarator.
                // A damaged list still leaves a name.
                let _ = self.view.children(die, |_, child| {
                    if child.tag == gimli::DW_TAG_formal_parameter && parameters.len() < DEEPEST {
                        parameters.push(child.ty);
                    }
                    Ok(())
                });
                let parameters: Vec<String> = parameters
                    .into_iter()
                    .map(|parameter| self.declare(parameter, String::new(), next))
                    .collect();
                let nothing = language == Some(Language::C) && entry.is_prototyped;
                let list = match &parameters[..] {
                    [] if nothing => "void".into(),
                    parameters => parameters.join(", "),
                };
                self.declare(entry.ty, format!("{inner}({list})"), next)
            }
            _ => join(&self.named(die, &entry, language), &inner),
        }
    }

    /// Pointers and references.
    fn point(&mut self, mark: &str, entry: &Entry<'a>, inner: &str, depth: usize) -> String {
        // `*` binds weaker than `[]` and `()`.
        let target = entry.ty.and_then(|target| self.view.entry(target).ok());
        let binds = |tag| tag == gimli::DW_TAG_array_type || tag == gimli::DW_TAG_subroutine_type;
        let inner = match target {
            Some(target) if binds(target.tag) => format!("({mark}{inner})"),
            _ => format!("{mark}{inner}"),
        };
        self.declare(entry.ty, inner, depth)
    }

    /// `const` of a pointer goes behind the star, of anything else in front of the type.
    fn qualify(&mut self, word: &str, entry: &Entry<'a>, inner: String, depth: usize) -> String {
        let target = entry.ty.and_then(|target| self.view.entry(target).ok());
        let is_pointer = target.is_some_and(|target| {
            matches!(
                target.tag,
                gimli::DW_TAG_pointer_type
                    | gimli::DW_TAG_reference_type
                    | gimli::DW_TAG_rvalue_reference_type
            )
        });
        if is_pointer {
            return self.declare(entry.ty, join(&format!(" {word}"), &inner), depth);
        }
        let text = self.declare(entry.ty, inner, depth);
        match text.strip_prefix("const ") {
            Some(rest) if word == "volatile" => format!("const volatile {rest}"),
            _ => format!("{word} {text}"),
        }
    }

    /// `long [2][3]` in C, `[[u64; 3]; 2]` in Rust.
    fn array(&mut self, die: Die, entry: &Entry<'a>, inner: &str, depth: usize) -> String {
        let Ok(Shape::Array(array)) = self.view.shape(die, entry) else {
            return join("?", inner);
        };
        let number = |count: &Option<u64>| count.map_or(String::new(), |count| count.to_string());
        if self.view.language_of(die) == Some(Language::Rust) {
            let element = self.declare(entry.ty, String::new(), depth);
            let dimensions = array.dimensions.iter().rev();
            let text = dimensions.fold(element, |element, count| {
                format!("[{element}; {}]", number(count))
            });
            return join(&text, inner);
        }
        let mut declarator = inner.to_owned();
        for count in &array.dimensions {
            declarator.push('[');
            declarator.push_str(&number(count));
            declarator.push(']');
        }
        // `long [8]` reads better than `long[8]`, `(*)[8]` than `(*) [8]`.
        self.declare(entry.ty, declarator, depth)
    }

    /// A type that has a name of its own, or would have.
    fn named(&mut self, die: Die, entry: &Entry<'a>, language: Option<Language>) -> String {
        let keyword = match entry.tag {
            gimli::DW_TAG_structure_type => "struct",
            gimli::DW_TAG_class_type => "class",
            gimli::DW_TAG_union_type => "union",
            gimli::DW_TAG_enumeration_type => "enum",
            gimli::DW_TAG_unspecified_type | gimli::DW_TAG_base_type => {
                return spell(&own_name(entry), language);
            }
            gimli::DW_TAG_ptr_to_member_type => return "pointer to member".into(),
            _ => "",
        };
        let is_c = language == Some(Language::C);
        if entry.name.is_none() && entry.signature.is_none() {
            let keyword = if keyword.is_empty() { "type" } else { keyword };
            return if is_c {
                format!("{keyword} (anonymous)")
            } else {
                format!("(anonymous {keyword})")
            };
        }
        // A type unit holds the scopes of its type; the unit that refers to it may not name it at all.
        let place = match (entry.name, entry.signature) {
            (None, Some(definition)) => definition,
            _ => die,
        };
        if is_c {
            let found = self.view.entry(place);
            let name = found.map_or_else(|_| "?".into(), |entry| own_name(&entry));
            return if keyword.is_empty() {
                name
            } else {
                format!("{keyword} {name}")
            };
        }
        let name = self
            .view
            .qualified_name(place)
            .unwrap_or_else(|| "?".into());
        spell(&name, language)
    }
}

/// gcc's own spelling of the integer types and of nested template arguments, as people write them.
fn spell(name: &str, language: Option<Language>) -> String {
    /// Longest first: some contain others.
    const INTEGERS: [(&str, &str); 6] = [
        ("long long unsigned int", "unsigned long long"),
        ("long unsigned int", "unsigned long"),
        ("short unsigned int", "unsigned short"),
        ("long long int", "long long"),
        ("long int", "long"),
        ("short int", "short"),
    ];
    if !matches!(language, Some(Language::C | Language::Cpp)) {
        return name.to_owned();
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    // A match must be of whole words: `my_long int_t` has none.
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let found = INTEGERS.iter().find(|(gcc, _)| {
            !in_word
                && rest
                    .strip_prefix(gcc)
                    .is_some_and(|after| !after.starts_with(is_word_character))
        });
        if let Some((gcc, people)) = found {
            text.push_str(people);
            rest = &rest[gcc.len()..];
            in_word = true;
        } else if rest.starts_with(" >") && text.ends_with('>') {
            rest = &rest[1..];
        } else if let Some(number) = number_with_suffix(rest).filter(|_| !in_word) {
            text.push_str(&rest[..number.digits]);
            rest = &rest[number.all..];
            in_word = true;
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            in_word = is_word_character(first);
        }
    }
    text
}

struct Number {
    digits: usize,
    all: usize,
}

/// `4UL` as clang writes the argument of `array<int, 4>`.
fn number_with_suffix(text: &str) -> Option<Number> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = text[digits..]
        .bytes()
        .take_while(|byte| matches!(byte, b'U' | b'L'))
        .count();
    let all = digits + suffix;
    (digits > 0 && suffix > 0 && !text[all..].starts_with(is_word_character))
        .then_some(Number { digits, all })
}

fn is_word_character(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// `DW_AT_name` as text.
fn own_name(entry: &Entry<'_>) -> String {
    entry.name.map_or_else(
        || "?".into(),
        |name| String::from_utf8_lossy(name).into_owned(),
    )
}

/// The type in front of the declarator, with a space if there is one.
fn join(name: &str, inner: &str) -> String {
    if inner.is_empty() {
        name.to_owned()
    } else {
        format!("{name} {inner}")
    }
}

#[cfg(test)]
mod tests {
    use super::spell;
    use crate::Language;

    #[test]
    fn integers_and_template_arguments_are_spelled_as_people_do() {
        let cpp = |name| spell(name, Some(Language::Cpp));
        assert_eq!(cpp("long unsigned int"), "unsigned long");
        assert_eq!(cpp("long long int"), "long long");
        assert_eq!(
            cpp(
                "std::map<long int, std::vector<short unsigned int, std::allocator<short unsigned int> > >"
            ),
            "std::map<long, std::vector<unsigned short, std::allocator<unsigned short>>>"
        );
        assert_eq!(cpp("std::array<int, 4UL>"), "std::array<int, 4>");
        assert_eq!(cpp("u8UL<v4UL, 4ULx>"), "u8UL<v4UL, 4ULx>");
        assert_eq!(cpp("long integer"), "long integer");
        assert_eq!(cpp("so_long int"), "so_long int");
        assert_eq!(spell("long int", Some(Language::Rust)), "long int");
    }
}
