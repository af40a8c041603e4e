/** Control characters, line separators, and characters that turn the direction of text. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/**
 * Text that can't command a terminal or show in another order than it has: such a character becomes
 * `\u001b`, which in a string of JSON is the same character.
 */
export function escapeControls(text: string): string {
  return text.replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
