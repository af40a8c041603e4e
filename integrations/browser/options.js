// The settings page. Settings that do not work are not saved.

import { callApi, readBase, readSettings, saveSettings } from './gatehouse.js'

const form = document.getElementById('settings')
const base = document.getElementById('base')
const token = document.getElementById('token')
const message = document.getElementById('message')

const saved = await readSettings()
base.value = saved?.base ?? ''
token.value = saved?.token ?? ''

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const settings = { base: readBase(base.value), token: token.value.trim() }
  if (settings.base === undefined) return say('The address must begin with http:// or https://.')
  say('Checking…')
  try {
    const { email } = await callApi(settings, 'GET', '/users/me')
    await saveSettings(settings)
    base.value = settings.base
    say(`Saved. Links belong to ${email}.`)
  } catch (error) {
    say(`Not saved. ${error.message}`)
  }
})

function say(text) {
  message.textContent = text
}
