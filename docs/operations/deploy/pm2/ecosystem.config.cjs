module.exports = {
  apps: [
    {
      name: 'app',
      script: './app.js',
      instances: 2,
      exec_mode: 'cluster',
      wait_ready: true,
      kill_timeout: 20_000, // in ms, longer than `drain` and 5 s
      treekill: false, // the model process of one instance serves the others, too
    },
  ],
}
