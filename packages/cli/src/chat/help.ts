/** What can be said in a conversation that is not for the model. */

export const help: Readonly<Record<string, string>> = {
  '': `Commands:
  /set            Change how the model answers
  /show           Show what the model is
  /load <model>   Go on with another model, from the beginning
  /save <model>   Keep this conversation and its settings as a model
  /clear          Forget what was said
  /bye            Leave
  /?, /help       Help; /? set, /? show and /? shortcuts tell more

Begin a message of several lines with """ and end it with """.
`,
  set: `Commands:
  /set system <text>                     What the model is told first
  /set parameter <name> <value>          Such as: temperature 0, num_ctx 8192, seed 1, stop <text> <text>
  /set format json                       Answers in JSON
  /set noformat                          Answers in any form
  /set think                             The model thinks first
  /set nothink                           It does not
  /set verbose                           Tell how long answers take
  /set quiet                             Do not
`,
  show: `Commands:
  /show info         What the model is
  /show license      Its license
  /show modelfile    Its Modelfile
  /show parameters   Its parameters, and those of this conversation
  /show system       What it is told first
  /show template     Its prompt template
`,
  shortcuts: `Keys:
  Ctrl + a, Ctrl + e   To the beginning or the end of the line
  Alt + b, Alt + f     A word back or forward
  Ctrl + w             Delete the word in front
  Ctrl + u, Ctrl + k   Delete all that is in front, or behind
  Up, Down             What was said before
  Ctrl + l             Clear the screen
  Ctrl + c             Stop the answer
  Ctrl + d             Leave
`,
}
