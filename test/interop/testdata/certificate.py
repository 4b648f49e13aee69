#!/usr/bin/python3
"""Sends one message with stomp.py as a client with a certificate.

    certificate.py HOST PORT DESTINATION CA [CERTIFICATE KEY]
"""

import sys
import threading

import stomp


class Listener(stomp.ConnectionListener):
    """Waits for the receipt."""

    def __init__(self):
        self.stored = threading.Event()

    def on_receipt(self, frame):
        self.stored.set()


host, port, destination, authority = sys.argv[1:5]
certificate, key = (sys.argv[5:7] + [None, None])[:2]
server = (host, int(port))
connection = stomp.Connection12([server], reconnect_attempts_max=1)
connection.set_ssl([server], key_file=key, cert_file=certificate, ca_certs=authority)
listener = Listener()
connection.set_listener("", listener)
connection.connect(wait=True)
connection.send(destination, "from stomp.py", receipt="1")
if not listener.stored.wait(20):
    sys.exit("no receipt")
connection.disconnect()
