/** Transliterates other alphabets to a–z, for user names. Scripts that need a dictionary (Han, Arabic …) are left out. */

const pairs = (text: string): [string, string][] => text.split(' ').map((pair) => [pair.slice(0, 1), pair.slice(1)])

/** Letters and their transliteration. Diacritics are removed first, so й is и and ü is u. */
const LETTERS: ReadonlyMap<string, string> = new Map([
  // Latin
  ...pairs('ßss æae œoe øo łl đd ðd þth ıi ŋng ħh ŧt əe'),
  // Greek
  ...pairs('αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo'),
  // Cyrillic: Russian, Ukrainian, Belarusian, Bulgarian, Serbian, Macedonian
  ...pairs('аa бb вv гg дd еe жzh зz иi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ъ ыy ь эe юyu яya'),
  ...pairs('іi єye ґg ђdj јj љlj њnj ћc џdz ѕdz'),
])

/** Korean syllables by their parts (Unicode §3.12), in Revised Romanization. */
const INITIALS = 'g kk n d tt r m b pp s ss _ j jj ch k t p h'.replace('_', '').split(' ')
const VOWELS = 'a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i'.split(' ')
const FINALS = ['', ...'k k ks n nj nh t l lk lm lb ls lt lp lh m p ps t t ng t t k t p t'.split(' ')]
const FIRST_SYLLABLE = 0xac00
const SYLLABLES = 11_172

/** `text` in lower-case ASCII where possible: "łukasz" becomes "lukasz", "иван" "ivan". Other characters stay unchanged. */
export const transliterate = (text: string): string =>
  [...text.normalize('NFKC').toLowerCase()]
    .map((letter) => LETTERS.get(letter) ?? syllable(letter) ?? bare(letter))
    .join('')

const syllable = (letter: string): string | null => {
  const index = (letter.codePointAt(0) ?? 0) - FIRST_SYLLABLE
  if (index < 0 || index >= SYLLABLES) return null
  const final = index % FINALS.length
  const vowel = ((index - final) / FINALS.length) % VOWELS.length
  const initial = Math.floor(index / (FINALS.length * VOWELS.length))
  return `${INITIALS[initial]}${VOWELS[vowel]}${FINALS[final]}`
}

/** Without diacritics. */
const bare = (letter: string): string => {
  const [base = ''] = letter.normalize('NFKD')
  return LETTERS.get(base) ?? base
}
