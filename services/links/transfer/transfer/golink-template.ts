import {
  isWholeAddress,
  placesIn,
  withoutBraces,
  type UrlPlace,
} from '../../names/links/placeholders.ts'
import type { TargetFields } from '../../names/links/target.ts'

/**
 * The `Long` that leads where our link does, or why there is none. Whether the path of a url
 * without places is appended is lost: golink always appends it.
 */
export function toTemplate({ url, append_path }: TargetFields): { Long: string } | Problem {
  const places = placesIn(url)
  if (places.some(({ name }) => /[1-9]/.test(name))) {
    return { problem: 'golink has no places such as {1} in a URL' }
  }
  if (places.some(({ name, fallback }) => name === 'user' && fallback !== undefined)) {
    return { problem: 'golink has no default for {user}' }
  }
  if (places.length === 0) return { Long: url.includes('{{') ? withoutBraces(url) : url }
  const whole = places.find(({ fallback = '' }) => isWholeAddress(fallback))?.fallback
  let at = 0
  let written = ''
  for (const place of places) {
    written += withoutBraces(url.slice(at, place.start)) + actionOf(place, whole !== undefined)
    at = place.end
  }
  written += withoutBraces(url.slice(at))
  if (whole !== undefined) return { Long: `{{if .Path}}${written}{{else}}${whole}{{end}}` }
  const takesPath = places.some(({ name }) => name === '*')
  return { Long: append_path && !takesPath ? appendPath(written) : written }
}

interface Problem {
  problem: string
}

function actionOf({ name, fallback }: UrlPlace, hasPath: boolean): string {
  if (name === 'user') return '{{.User}}'
  if (hasPath || fallback === undefined) return '{{.Path}}'
  return `{{with .Path}}{{.}}{{else}}${fallback}{{end}}`
}

function appendPath(written: string): string {
  return written.replace(/\/?(?=[?#]|$)/, (slash) => {
    return slash === '' ? '{{with .Path}}/{{.}}{{end}}' : '/{{.Path}}'
  })
}
