# pyright: basic, reportMissingImports=false
"""A Django project in a file: a form that is guarded against forgery."""

import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.urls import path

settings.configure(
    DEBUG=True,
    SECRET_KEY="only for tests",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=[".sandpod.localhost"],
    MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
)
GREETING = "hello from Django"


def form(request):
    if request.method == "POST":
        return HttpResponse(f"posted: {request.POST['text']}")
    return HttpResponse(f"{GREETING} at {request.build_absolute_uri()}; token={get_token(request)}")


urlpatterns = [path("", form)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
