/* Corrects the server address in the texts that users copy. */
;(() => {
  // The server knows only the Host header. Behind a proxy that terminates TLS, the address bar has the right URL.
  const correct = () => {
    for (const tabs of document.querySelectorAll('[data-guess]')) {
      const { guess } = tabs.dataset
      if (guess !== location.origin)
        for (const code of tabs.querySelectorAll('pre code'))
          code.textContent = code.textContent.replaceAll(guess, location.origin)
      delete tabs.dataset.guess
    }
  }

  document.addEventListener('htmx:after:swap', correct)
  correct()
})()
