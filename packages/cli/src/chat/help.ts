/** Help texts of the commands in a conversation. */

export const help: Readonly<Record<string, string>> = {
  '': `Commands:
  /set            Set session variables
  /show           Show model information
  /load <model>   Load another model and clear the session
  /save <model>   Save the session as a model
  /clear          Clear session context
  /bye            Exit
  /?, /help       Help; also /? set, /? show and /? shortcuts

Use """ to begin and to end a multi-line message.
`,
  set: `Commands:
  /set system <text>                     Set system message
  /set parameter <name> <value>          Set a parameter: temperature 0, num_ctx 8192, seed 1, stop <text> <text>
  /set format json                       Enable JSON mode
  /set noformat                          Disable formatting
  /set history                           Enable history
  /set nohistory                         Disable history
  /set think                             Enable thinking
  /set nothink                           Disable thinking
  /set verbose                           Show metrics after each answer
  /set quiet                             Hide metrics
`,
  show: `Commands:
  /show info         Show details for this model
  /show license      Show model license
  /show modelfile    Show Modelfile for this model
  /show parameters   Show parameters of this model and of the session
  /show system       Show system message
  /show template     Show prompt template
`,
  shortcuts: `Keys:
  Ctrl + a, Ctrl + e   Move to the beginning or the end of the line
  Alt + b, Alt + f     Move back or forward one word
  Ctrl + w             Delete the word before the cursor
  Ctrl + u, Ctrl + k   Delete the line before or after the cursor
  Up, Down             Previous or next message
  Ctrl + l             Clear the screen
  Ctrl + c             Stop the model from responding
  Ctrl + d             Exit
`,
}
