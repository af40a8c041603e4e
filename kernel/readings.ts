/** How the text of a variable, a flag or an argument is read. */
export interface Reading<T> {
  /** What is accepted, in words: the end of "expected …" and "must be …". */
  readonly form: string
  /** Throws an error whose message quotes no value: it may be a password. */
  readonly read: (text: string) => T
}

/** Any text. */
export function anyText(form: string): Reading<string> {
  return { form, read: (text) => text }
}

/** A text that matches a pattern. */
export function pattern(form: string, expression: RegExp): Reading<string> {
  return {
    form,
    read(text) {
      if (!expression.test(text)) throw new SyntaxError('it has another form')
      return text
    },
  }
}

/** One of a few words. */
export function oneOf<const T extends string>(...words: readonly T[]): Reading<T> {
  const last = words.at(-1) ?? ''
  return {
    form: words.length === 1 ? last : `${words.slice(0, -1).join(', ')} or ${last}`,
    read(text) {
      const word = words.find((known) => known === text)
      if (word === undefined) throw new SyntaxError('it is none of them')
      return word
    },
  }
}

/** A whole number within bounds; `of` names what is counted. */
export function integer({
  min,
  max,
  of = '',
}: {
  readonly min: number
  readonly max: number
  readonly of?: string
}): Reading<number> {
  return {
    form: `a whole number${of === '' ? '' : ` of ${of}`} from ${min} to ${max}`,
    read(text) {
      const number = /^\d{1,10}$/.test(text) ? Number(text) : -1
      if (number < min || number > max) throw new RangeError('it is out of bounds')
      return number
    },
  }
}

/** Reads text with a function that gives undefined for what it does not accept. */
export function accepted<T>(form: string, parse: (text: string) => T | undefined): Reading<T> {
  return {
    form,
    read(text) {
      const value = parse(text)
      if (value === undefined) throw new SyntaxError('it has another form')
      return value
    },
  }
}

/** `true` or `false`. */
export const trueOrFalse: Reading<boolean> = {
  form: 'true or false',
  read: (text) => oneOf('true', 'false').read(text) === 'true',
}

/** An http or https URL; a user or a password in it would be shown where the address is. */
export function readWebUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain = url?.username === '' && url.password === '' && /^https?:$/.test(url.protocol)
  if (url === undefined || !plain) throw new SyntaxError('it is no such URL')
  return url
}
