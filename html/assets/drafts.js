// What a person has typed into a form stays when htmx replaces the part of the page around it for
// another reason, such as a filter or a switch. The form that was sent is not kept: its reply says
// what stands in it.

function isTicked(field) {
  return field.type === 'checkbox' || field.type === 'radio'
}

function isChanged(field) {
  if (field.type === 'file') return false
  if (isTicked(field)) return field.checked !== field.defaultChecked
  if (!(field instanceof HTMLSelectElement)) return field.value !== field.defaultValue
  const options = [...field.options]
  const first = options.find((option) => option.defaultSelected) ?? options[0]
  return first !== undefined && field.value !== first.value
}

function fieldsIn(part) {
  return [...part.querySelectorAll('input, select, textarea')]
}

/** Two events have forms with the same ids: the address tells them apart. */
function keyOf(field) {
  const { id, name, type, value, form } = field
  const tick = isTicked(field) ? value : ''
  return JSON.stringify([form?.getAttribute('action'), id, name, type, tick])
}

/** The changed fields of a part of the page, without those of the form that was sent. */
function draftsIn(part, sent) {
  return fieldsIn(part)
    .filter((field) => (sent === null || field.form !== sent) && isChanged(field))
    .map((field) => ({ key: keyOf(field), value: field.value, checked: field.checked }))
}

/** Puts a draft into the field that took the place of the one that it was typed in. */
function restore({ key, value, checked }) {
  const field = fieldsIn(document).find((other) => keyOf(other) === key)
  if (field === undefined) return
  if (isTicked(field)) field.checked = checked
  else field.value = value
  for (const around of document.querySelectorAll('details')) {
    if (around.contains(field)) around.open = true
  }
}

document.addEventListener('htmx:before:swap', ({ detail: { ctx, tasks } }) => {
  const sent = ctx.sourceElement.closest('form')
  ctx.drafts = tasks.flatMap(({ target }) => {
    const part = typeof target === 'string' ? document.querySelector(target) : target
    return part === null ? [] : draftsIn(part, sent)
  })
})
document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => ctx.drafts.forEach(restore))
